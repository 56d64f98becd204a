package structures

import (
	"context"
	"math/rand/v2"
	"runtime"
)

// Words is the distinct count of a text: the collected works of Shakespeare have 67,801 different words. The text
// here is synthetic, with as many different words, a few of them very frequent and most of them rare.
type Words struct {
	Distinct int   `json:"distinct"`
	Total    int   `json:"total"`
	Rows     []Row `json:"rows"`
}

const (
	distinctWords = 67_801
	totalWords    = 900_000
)

func countWords(ctx context.Context) (Words, error) {
	text := makeText()
	words := Words{Distinct: distinctWords, Total: len(text)}
	for _, c := range []contender{
		{"hash set", "every word: exact", true, func() (structure, error) { return &hashSet{keys: map[string]struct{}{}}, nil }},
		{"HyperLogLog, 512 bytes", "2^10 registers of 4 bits: standard error 3.3 %", false, func() (structure, error) {
			return newHyperLogLog(10, 4), nil
		}},
	} {
		heap := liveHeap()
		s, err := c.open()
		if err != nil {
			return words, err
		}
		if err := ctx.Err(); err != nil {
			return words, err
		}
		row := Row{Name: c.name, Stores: c.stores}
		keyNs := perKey(len(text), func() { s.prepare(text) })
		row.AddNs = perKey(len(text), func() { row.Count = s.checkAndAdd() })
		s.prepare(nil)
		row.Bytes = liveHeap() - heap
		if h, ok := s.(*hyperLogLog); ok {
			row.Count, row.Bytes, row.KeyNs = h.estimate(), int64(len(h.memory)), &keyNs
		}
		row.Error = float64(row.Count-distinctWords) / distinctWords
		words.Rows = append(words.Rows, row)
		runtime.KeepAlive(s)
	}
	runtime.KeepAlive(text)
	return words, nil
}

// makeText is the same text every time: each word once, so that the truth is known, and the rest by Zipf's law.
func makeText() []string {
	random := rand.New(rand.NewPCG(1564, 1616))
	vocabulary := make([]string, 0, distinctWords)
	seen := make(map[string]bool, distinctWords)
	for len(vocabulary) < distinctWords {
		letters := make([]byte, 3+random.IntN(9))
		for i := range letters {
			letters[i] = 'a' + byte(random.IntN(26))
		}
		if word := string(letters); !seen[word] {
			seen[word] = true
			vocabulary = append(vocabulary, word)
		}
	}
	text := append(make([]string, 0, totalWords), vocabulary...)
	zipf := rand.NewZipf(random, 1.1, 3, distinctWords-1)
	for len(text) < totalWords {
		text = append(text, vocabulary[zipf.Uint64()])
	}
	random.Shuffle(len(text), func(i, j int) { text[i], text[j] = text[j], text[i] })
	return text
}
