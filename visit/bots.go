package visit

type bots struct{}

func newBots() *bots { return &bots{} }

func (b *bots) is(agent string) bool { return agent == "" }
