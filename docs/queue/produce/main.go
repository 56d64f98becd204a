// Command produce sends visits to the topic visits on this machine: go run ./docs/queue/produce
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log"

	"github.com/twmb/franz-go/pkg/kgo"
)

func main() {
	// Acknowledged by all replicas, and not twice in the topic where an acknowledgement was lost:
	// that is the client's default.
	client, err := kgo.NewClient(kgo.SeedBrokers("127.0.0.1:9092"))
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
	for n := range 100 {
		visit, _ := json.Marshal(map[string]string{ // of strings, which cannot fail
			"uri": fmt.Sprintf("https://blog.example/%d", n%7),
			"ip":  fmt.Sprintf("192.0.2.%d", n%40),
		})
		client.Produce(context.Background(), &kgo.Record{Topic: "visits", Value: visit}, func(_ *kgo.Record, err error) {
			if err != nil {
				log.Print("not sent: ", err)
			}
		})
	}
	if err := client.Flush(context.Background()); err != nil {
		log.Print(err)
	}
}
