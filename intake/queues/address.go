package queues

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// Address is the address of a queue. It includes the login and the options for connecting.
type Address struct {
	scheme   string   // kafka, or kafkas for TLS
	hosts    []string // addresses of brokers, each with a port
	queue    string   // the name of the topic
	user     string
	password string
	parts    []int32 // partitions to read; empty: the consumer group assigns partitions
	options  map[string]string
}

// kind describes addresses with the same URL scheme: their default port, an example, and the options that they may contain.
type kind struct {
	port    string
	example string
	options []string
}

var kinds = map[string]kind{
	"kafka": {"9092", "kafka://localhost:9092/visits", []string{"sasl", "group", "cluster"}},
	"kafkas": {"9093", "kafkas://user@broker.example:9093/visits?sasl=scram-sha-512",
		[]string{"sasl", "group", "cluster", "ca", "cert", "key"}},
}

// ParseAddress parses the address of a queue, and returns the faults of all its arguments. partitions is a list of
// partitions to read, like 0,3. If it is empty, the consumer group assigns partitions. passwordFile is the path of a file
// with the password, or "". The option group of the address is the name of the consumer group. By default, the name is
// footfall- followed by app.
func ParseAddress(text, partitions, passwordFile, app string) (*Address, []error) {
	scheme, rest, _ := strings.Cut(text, "://")
	k, ok := kinds[scheme]
	switch {
	case scheme == "nats" || scheme == "tls":
		return nil, []error{errors.New("NATS is no longer supported: send visits through Kafka (kafka://…), or with POST /visits")}
	case !ok:
		return nil, []error{fmt.Errorf("the queue begins with neither kafka:// nor kafkas://: write one like %s", kinds["kafka"].example)}
	}
	var faults []error
	wrong := func(format string, args ...any) { faults = append(faults, fmt.Errorf(format, args...)) }
	end := strings.IndexAny(rest, "/?#")
	if end < 0 {
		end = len(rest)
	}
	authority, rest := rest[:end], rest[end:]
	login, hosts := "", authority
	if at := strings.LastIndexByte(authority, '@'); at >= 0 {
		login, hosts = authority[:at+1], authority[at+1:]
	}
	parsed, err := url.Parse(scheme + "://" + login + "host" + rest)
	if err != nil { // do not use err: its text would contain the password
		return nil, []error{fmt.Errorf("the queue cannot be read as a URL: write one like %s, with %%40 for @ in a password", k.example)}
	}
	a := &Address{scheme: scheme, queue: strings.TrimPrefix(parsed.Path, "/"), options: map[string]string{"group": "footfall-" + app}}
	a.user = parsed.User.Username()
	a.password, _ = parsed.User.Password()
	for host := range strings.SplitSeq(hosts, ",") {
		if host == "" || strings.ContainsAny(host, " \\") {
			wrong("the queue names no host before its topic: write one like %s", k.example)
			continue
		}
		if colon := strings.LastIndexByte(host, ':'); colon <= strings.LastIndexByte(host, ']') {
			host += ":" + k.port
		}
		a.hosts = append(a.hosts, host)
	}
	if a.queue == "" || strings.Contains(a.queue, "/") {
		wrong("the queue names no topic: write one like %s", k.example)
	}
	for name, values := range parsed.Query() {
		if !slices.Contains(k.options, name) {
			wrong("%q is not an option of a queue: its options are %s", name, strings.Join(k.options, ", "))
		}
		a.options[name] = values[len(values)-1]
	}
	faults = append(faults, a.readPassword(passwordFile)...)
	faults = append(faults, a.readPartitions(partitions)...)
	return a, append(faults, a.checkLogin()...)
}

func (a *Address) readPartitions(text string) (faults []error) {
	if text == "" {
		return nil
	}
	for one := range strings.SplitSeq(text, ",") {
		n, err := strconv.ParseInt(strings.TrimSpace(one), 10, 32)
		if err != nil || n < 0 || slices.Contains(a.parts, int32(n)) {
			faults = append(faults, fmt.Errorf("--partitions: %q is not a partition, or is given twice: write each once, as in 0,3", one))
			continue
		}
		a.parts = append(a.parts, int32(n))
	}
	return faults
}
