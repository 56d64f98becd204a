package queues

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl"
	"github.com/twmb/franz-go/pkg/sasl/plain"
	"github.com/twmb/franz-go/pkg/sasl/scram"
)

// checkLogin returns the faults in the address's TLS files, user, password and login mechanism.
func (a *Address) checkLogin() (faults []error) {
	if _, err := a.tls(); err != nil {
		faults = append(faults, err)
	}
	sasl, mechanisms := a.options["sasl"], "plain, scram-sha-256 or scram-sha-512"
	switch {
	case sasl == "" && a.user != "":
		faults = append(faults, fmt.Errorf("the queue names a user, but no login mechanism: add ?sasl= with %s", mechanisms))
	case sasl != "" && saslOf[sasl] == nil:
		faults = append(faults, fmt.Errorf("sasl: %q is not a known mechanism: write %s", sasl, mechanisms))
	case sasl != "" && (a.user == "" || a.password == ""):
		faults = append(faults, errors.New("sasl: it needs a user before the host, as user@host, and a password: name a file that has it with "+
			"--password-file"))
	}
	return faults
}

// tls returns the TLS configuration for connections, or nil if the address does not use TLS.
func (a *Address) tls() (*tls.Config, error) {
	if a.scheme != "kafkas" {
		return nil, nil
	}
	c := &tls.Config{MinVersion: tls.VersionTLS12}
	if file := a.options["ca"]; file != "" {
		text, err := os.ReadFile(file) //nolint:gosec // the operator chooses it
		if err != nil {
			return nil, fmt.Errorf("ca: %w", err)
		}
		c.RootCAs = x509.NewCertPool()
		if !c.RootCAs.AppendCertsFromPEM(text) {
			return nil, fmt.Errorf("ca: %s contains no certificate: name a file in PEM", file)
		}
	}
	cert, key := a.options["cert"], a.options["key"]
	if cert == "" && key == "" {
		return c, nil
	}
	pair, err := tls.LoadX509KeyPair(cert, key)
	if err != nil {
		return nil, fmt.Errorf("cert and key: %w", err)
	}
	c.Certificates = []tls.Certificate{pair}
	return c, nil
}

func (a *Address) readPassword(file string) []error {
	if file == "" {
		return nil
	}
	text, err := os.ReadFile(file) //nolint:gosec // the operator chooses it
	switch {
	case err != nil:
		return []error{fmt.Errorf("--password-file: %w", err)}
	case a.password != "":
		return []error{errors.New("--password-file: the queue also contains a password: leave out one of them")}
	}
	a.password = strings.TrimRight(string(text), "\r\n")
	return nil
}

var saslOf = map[string]func(user, password string) sasl.Mechanism{
	"plain": func(user, password string) sasl.Mechanism {
		return plain.Auth{User: user, Pass: password}.AsMechanism()
	},
	"scram-sha-256": func(user, password string) sasl.Mechanism {
		return scram.Auth{User: user, Pass: password}.AsSha256Mechanism()
	},
	"scram-sha-512": func(user, password string) sasl.Mechanism {
		return scram.Auth{User: user, Pass: password}.AsSha512Mechanism()
	},
}

func (a *Address) kafkaOptions() ([]kgo.Opt, error) {
	options := []kgo.Opt{kgo.SeedBrokers(a.hosts...), kgo.ClientID("footfall")}
	if mechanism := saslOf[a.options["sasl"]]; mechanism != nil {
		options = append(options, kgo.SASL(mechanism(a.user, a.password)))
	}
	secure, err := a.tls()
	if secure != nil {
		options = append(options, kgo.DialTLSConfig(secure))
	}
	return options, err
}
