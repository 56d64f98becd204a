package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"time"
)

type healthCmd struct {
	Addr string `env:"FOOTFALL_ADDR" default:"127.0.0.1:8080" placeholder:"HOST:PORT"`
}

const healthWithin = 3 * time.Second

func (c *healthCmd) check(globals) (f faults) {
	f.add(checkAddress("--addr", c.Addr))
	return f
}

func (c *healthCmd) run(ctx context.Context, p *program) error {
	if err := askService(ctx, c.Addr, "/readyz"); err != nil {
		return err
	}
	fmt.Fprintln(p.stdout, "ready")
	return nil
}

// askService requests path from the service at address. Unless the status of the response is 200, it returns an error with
// the reason.
func askService(ctx context.Context, address, path string) error {
	ctx, cancel := context.WithTimeout(ctx, healthWithin)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+reachable(address)+path, http.NoBody)
	if err != nil {
		return err
	}
	// Ignore proxies in the environment, because they cannot reach this machine's loopback address.
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	response, err := client.Do(request)
	if err != nil {
		return fmt.Errorf("the service does not answer: %w", err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		var answer struct{ Error string }
		_ = json.NewDecoder(io.LimitReader(response.Body, 4096)).Decode(&answer) // if this fails, the error contains only the status
		return fmt.Errorf("the service is not ready: %s %s", response.Status, answer.Error)
	}
	return nil
}

// reachable returns an address at which a program on this machine can reach a service that listens on address. If the
// service listens on all addresses of the machine, reachable returns the loopback address.
func reachable(address string) string {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return address
	}
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	return net.JoinHostPort(host, port)
}

// published is an environment variable with the service's address outside its container. The Docker Compose file sets it,
// because a program inside the container cannot find out this address.
const published = "FOOTFALL_PUBLISHED"

// servedAt returns the URL at which users on this machine reach a service that listens on address.
func servedAt(address string) string {
	return "http://" + reachable(cmp.Or(os.Getenv(published), address))
}

// checkAddress validates the address in a flag. Only --admin-addr may be empty or "off".
func checkAddress(flag, address string) error {
	if flag == adminAddr && (address == "" || address == adminOff) {
		return nil
	}
	_, port, err := net.SplitHostPort(address)
	if err == nil {
		_, err = net.LookupPort("tcp", port)
	}
	if err != nil || port == "" {
		return fmt.Errorf("%s: %q is not an address: write host:port, like 127.0.0.1:8080", flag, address)
	}
	return nil
}
