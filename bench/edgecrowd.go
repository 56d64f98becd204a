package bench

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

// slowPause is how long a slow client waits from one byte to the next.
const slowPause = time.Second

const (
	// gatherWithin is the time over which a crowd comes.
	gatherWithin = 500 * time.Millisecond
	// firstLife bounds how long a client stays the first time, so that not all are sent away at the same moment ever after.
	firstLife = 5 * time.Second
	// thinnest is the share of a crowd that must be there, on average: the others are about to come again.
	thinnest = 0.9
)

// crowd is slow clients, who come again whenever they are sent away: of five, three send a header a byte at a time, one sends a body
// so, and one reads an answer so. Each has a goroutine, which leave ends.
type crowd struct {
	host, key string
	clients   int
	random    *rand.Rand // gather's
	pause     time.Duration

	stop  context.CancelFunc
	all   sync.WaitGroup // the clients, and who looks at them; stop ends them
	looks []int64        // how many were there each time that was looked; who looks writes it, and nobody reads it before he has ended

	there                                         atomic.Int64
	sent, sentAway, refused, asked, answered, odd atomic.Int64
}

// CrowdFigures are what slow clients did, from their first coming to the end of the turn.
type CrowdFigures struct {
	Clients  int     `json:"clients"`
	Held     float64 `json:"held"`     // connections that were open at a time, the mean while visits came
	Files    int64   `json:"files"`    // that the service had open at the end
	Bytes    int64   `json:"bytes"`    // that were sent one at a time
	SentAway int64   `json:"sentAway"` // connections that the service closed
	Refused  int64   `json:"refused"`  // and those that it did not take
	Asked    int64   `json:"asked"`    // visits by those who read slowly
	Answered int64   `json:"answered"` // and answers of 200 that they have read the beginning of
}

func newCrowd(host, key string, clients int, seed uint64) *crowd {
	return &crowd{
		host: host, key: key, clients: clients, pause: slowPause,
		random: rand.New(rand.NewPCG(seed, 0)), //nolint:gosec // to be repeated, not to be secret
	}
}

// gather returns when the crowd is there. It stays until leave, which must be called, or the end of ctx.
func (c *crowd) gather(ctx context.Context) error {
	ctx, c.stop = context.WithCancel(ctx)
	for n := range c.clients {
		comes := time.Duration(c.random.Int64N(int64(gatherWithin)))
		stays := time.Duration(c.random.Int64N(int64(firstLife)))
		c.all.Go(func() { c.client(ctx, n, comes, stays) })
	}
	err := waitUntil(ctx, "the slow clients are there", func() (bool, error) {
		return float64(c.there.Load()) >= thinnest*float64(c.clients), nil
	})
	if err != nil {
		c.leave()
		return err
	}
	c.all.Go(func() { c.look(ctx) })
	return nil
}

// look counts now and then how many are there, until ctx ends.
func (c *crowd) look(ctx context.Context) {
	again := time.NewTicker(c.pause)
	defer again.Stop()
	for {
		c.looks = append(c.looks, c.there.Load())
		select {
		case <-again.C:
		case <-ctx.Done():
			return
		}
	}
}

// leave closes all connections, and returns when all clients have ended. It may be called again.
func (c *crowd) leave() {
	c.stop()
	c.all.Wait()
}

// figures are those of a crowd that has left.
func (c *crowd) figures() CrowdFigures {
	var sum int64
	for _, there := range c.looks {
		sum += there
	}
	return CrowdFigures{
		Clients: c.clients, Held: ratio(float64(sum), float64(len(c.looks))), Bytes: c.sent.Load(), SentAway: c.sentAway.Load(),
		Refused: c.refused.Load(), Asked: c.asked.Load(), Answered: c.answered.Load(),
	}
}

// thin is an error where the crowd was none, so that what was measured beside it says nothing.
func (c *crowd) thin(f CrowdFigures) error {
	if least := thinnest * float64(f.Clients); f.Held < least || float64(f.Files) < least {
		return fmt.Errorf("bench: of %d slow clients only %.0f were there at a time, the service had %d files open at the end, and refused %d connections",
			f.Clients, f.Held, f.Files, f.Refused)
	}
	if odd := c.odd.Load(); odd > 0 {
		return fmt.Errorf("bench: %d slow visits were not answered 200", odd)
	}
	return nil
}

// fault says what is wrong with so many visits that were counted for slow clients, or "". Some of the last answers were on the way.
func (f CrowdFigures) fault(counted int64) string {
	if counted >= f.Answered && counted <= f.Asked {
		return ""
	}
	return fmt.Sprintf("slow clients visited %d times and read %d answers, and %d visits are counted", f.Asked, f.Answered, counted)
}

// client comes, and comes again, until ctx ends.
func (c *crowd) client(ctx context.Context, n int, comes, stays time.Duration) {
	for rest(ctx, comes) {
		conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", c.host)
		if err != nil {
			if ctx.Err() == nil {
				c.refused.Add(1)
			}
			comes = c.pause
			continue
		}
		c.there.Add(1)
		life, end := context.WithCancel(ctx)
		if stays > 0 { // the first time
			life, end = context.WithTimeout(ctx, stays)
		}
		unhook := context.AfterFunc(life, func() { conn.Close() })
		c.live(conn, n)
		if life.Err() == nil {
			c.sentAway.Add(1)
		}
		unhook()
		end()
		conn.Close()
		c.there.Add(-1)
		comes, stays = 0, 0
	}
}

// live is what a client does with a connection until it is closed.
func (c *crowd) live(conn net.Conn, n int) {
	const agent = "User-Agent: Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0\r\n"
	switch n % 5 {
	case 3:
		fmt.Fprintf(conn, "POST /visit HTTP/1.1\r\nHost: %s\r\n%sContent-Type: application/json\r\nContent-Length: 4000\r\n\r\n", c.host, agent)
		c.trickle(conn, `{"app":"demo","uri":"http://`+slowSite+`/`)
	case 4:
		reader := bufio.NewReaderSize(&slowReader{conn, c.pause}, 16)
		for c.read(conn, reader, fmt.Sprintf("GET /visit?app=%s&ip=%s&uri=http://%s/page HTTP/1.1\r\nHost: %s\r\n%sAuthorization: Bearer %s\r\n\r\n",
			app, addressOf(n), slowSite, c.host, agent, c.key)) {
		}
	default:
		c.trickle(conn, "GET /visit?app=demo&uri=http://"+slowSite+"/")
	}
}

// trickle sends a text a byte at a time, and goes on with its last byte, until the connection is closed or something is answered.
func (c *crowd) trickle(conn net.Conn, text string) {
	var answer [1]byte
	for n := 0; ; n++ {
		if _, err := conn.Write([]byte{text[min(n, len(text)-1)]}); err != nil {
			return
		}
		c.sent.Add(1)
		_ = conn.SetReadDeadline(time.Now().Add(c.pause)) // fails where it is closed, as the next does
		if _, err := conn.Read(answer[:]); !errors.Is(err, os.ErrDeadlineExceeded) {
			return
		}
	}
}

// read sends a visit and reads its answer; ok tells whether the connection is good for another.
func (c *crowd) read(conn net.Conn, from *bufio.Reader, request string) (ok bool) {
	c.asked.Add(1)
	if _, err := io.WriteString(conn, request); err != nil {
		return false
	}
	answer, err := http.ReadResponse(from, nil)
	if err != nil {
		return false
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		c.odd.Add(1)
		return false
	}
	c.answered.Add(1)
	_, err = io.Copy(io.Discard, answer.Body)
	return err == nil
}

// slowReader reads a byte at a time.
type slowReader struct {
	from  io.Reader
	pause time.Duration
}

func (s *slowReader) Read(to []byte) (int, error) {
	time.Sleep(s.pause)
	return s.from.Read(to[:min(1, len(to))])
}

// rest returns after a while with true, or with false when ctx ends.
func rest(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return ctx.Err() == nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
