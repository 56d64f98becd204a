// Package webhook calls other programs when a page or a site reaches a round number of visitors, such as 1, 2, 5, 10
// or 20. Pending calls are in the table webhooks (functions/round_numbers.sql). A call is retried until its receiver
// accepts it. If several instances are running, each attempt is made by only one of them. Visits never wait for this
// package.
package webhook

import (
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
	"unicode"

	"footfall/db"
	"footfall/pause"
	"footfall/visit"
)

const (
	lookEvery    = time.Second
	callTimeout  = 10 * time.Second
	storeTimeout = 10 * time.Second // time limit for storing the result of a call
	maxBackoff   = time.Hour
	mostHeaders  = 64 << 10 // maximum size of the header of a response, in bytes; the body is not read
	longestURL   = 2048     // maximum length of a URL, in bytes; the table webhooks has the same limit
)

// Options configure NewSender. A field with the zero value has its default.
type Options struct {
	Log    *slog.Logger  // default: discards everything
	Within time.Duration // how long a receiver may take to respond; default 10 s
}

// Keys is a function that derives the key for signing a webhook's calls from the webhook's ID and salt.
type Keys func(webhook int32, salt []byte) []byte

// Sender makes the calls of all webhooks in a database.
type Sender struct {
	db     *db.DB
	key    Keys
	log    *slog.Logger
	within time.Duration
}

// NewSender returns a Sender that signs the calls with key. If key is nil, the Sender makes no calls. The calls then
// wait until an instance with a key is running.
func NewSender(d *db.DB, key Keys, o Options) *Sender {
	return &Sender{d, key, cmp.Or(o.Log, slog.New(slog.DiscardHandler)), cmp.Or(o.Within, callTimeout)}
}

// Run checks every second whether pages or sites have reached round numbers, and makes the calls that are due. It
// returns when ctx ends.
func (s *Sender) Run(ctx context.Context) {
	var underWay sync.WaitGroup
	defer underWay.Wait()
	failing := false
	for pause.For(ctx, lookEvery) == nil {
		due, err := s.due(ctx)
		for _, w := range due {
			underWay.Go(func() { s.deliver(ctx, w) })
		}
		if err != nil && !failing {
			s.log.Warn("webhooks cannot be called now; retrying", "in", lookEvery, "error", err)
		}
		failing = err != nil
	}
}

// due first adds a call for each round number that was reached since the last check. It then returns the first
// pending call of each webhook whose next attempt is due, and reserves these calls for this instance. If this
// instance is killed during a call, another instance retries the call after s.within + storeTimeout.
func (s *Sender) due(ctx context.Context) (due []WebhooksTryRow, err error) {
	err = s.write(ctx, func(ctx context.Context, q *Queries) error {
		if err := q.RoundNumbersSee(ctx); err != nil || s.key == nil {
			return err
		}
		due, err = q.WebhooksTry(ctx, (s.within + storeTimeout).Seconds())
		return err
	})
	return due, err
}

// write runs f in a transaction. The transaction may take as long as the statement timeout, and continues if ctx
// ends.
func (s *Sender) write(ctx context.Context, f func(ctx context.Context, q *Queries) error) error {
	within, cancel := s.db.InTime(context.WithoutCancel(ctx))
	defer cancel()
	return s.db.InTx(within, func(q *db.Queries) error { return f(within, New(q.Tx())) })
}

// deliver makes a call and stores the result. If the result cannot be stored, the call is made again later.
func (s *Sender) deliver(ctx context.Context, w WebhooksTryRow) {
	status, failed := s.call(ctx, w)
	answer := time.Now().UTC().Format("2006-01-02 15:04:05 UTC: ") + resultText(status, failed)
	err := s.write(ctx, func(ctx context.Context, q *Queries) error {
		if failed == nil {
			return q.WebhookTaken(ctx, WebhookTakenParams{ID: w.ID, Body: w.Body, Answer: answer})
		}
		return q.WebhookBackOff(ctx, WebhookBackOffParams{ID: w.ID, Most: maxBackoff.Seconds(), Answer: answer})
	})
	if failed = errors.Join(unhideError(failed), err); failed != nil {
		s.log.Warn("a call of a webhook failed; it will be retried", "webhook", w.ID, "error", failed)
	}
}

// hiddenError is a network error whose text is hidden from users and appears only in the log. Otherwise a user who
// adds webhooks could find out names and addresses in the service's own network.
type hiddenError struct{ error }

func (hiddenError) Error() string { return "its host cannot be reached, or is not public" }

func unhideError(err error) error {
	if hidden, is := errors.AsType[hiddenError](err); is {
		return hidden.error
	}
	return err
}

// resultText describes the result of a call. It replaces unprintable characters, because the error may quote the
// response of a receiver.
func resultText(status int, failed error) string {
	if failed == nil {
		return fmt.Sprintf("accepted (%d)", status)
	}
	return strings.ToValidUTF8(strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return unicode.ReplacementChar
		}
		return r
	}, failed.Error()), "")
}

// Test makes a test call to a webhook and returns the result.
func (s *Sender) Test(ctx context.Context, id int32, salt []byte, url string, private bool) visit.Text {
	call := fmt.Sprintf("%d/test-%d", id, time.Now().UnixNano()) // unique, because receivers ignore an id that they know
	body := fmt.Sprintf(`{"test":true,"id":%q}`, call)
	status, err := s.call(ctx, WebhooksTryRow{ID: id, Url: url, Private: private, Salt: salt, Body: body, Call: call})
	if err != nil {
		s.log.Warn("a test call of a webhook was not accepted", "webhook", id, "error", unhideError(err))
		if of, is := errors.AsType[*visit.Error](err); is {
			return visit.Textf("The test call was not accepted: %v.", of)
		}
		return visit.Textf("The test call was not accepted: %s.", resultText(status, err))
	}
	return visit.Textf("The test call was accepted (%d).", status)
}

// call makes one call. Any status 2xx means that the receiver has accepted the call.
func (s *Sender) call(ctx context.Context, w WebhooksTryRow) (status int, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, s.within,
		visit.Errorf(visit.Unavailable, "", "its receiver did not respond within %v", s.within))
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, w.Url, strings.NewReader(w.Body))
	if err != nil {
		return 0, errors.New("its URL cannot be called: remove it") // without err, which contains the URL: the URL may be secret
	}
	now := strconv.FormatInt(time.Now().Unix(), 10)
	request.Header = http.Header{
		"Content-Type":      {"application/json"},
		"User-Agent":        {"Footfall"},
		"Webhook-Id":        {w.Call},
		"Webhook-Timestamp": {now},
		"Webhook-Signature": {sign(s.key(w.ID, w.Salt), w.Call, now, w.Body)},
	}
	answer, err := transport(w.Private).RoundTrip(request)
	if _, network := errors.AsType[*net.OpError](err); network && !w.Private {
		return 0, hiddenError{err}
	} else if of, is := errors.AsType[*visit.Error](err); is {
		return 0, of
	} else if err != nil {
		return 0, fmt.Errorf("%.200s", err.Error()) // shortened, because err may quote the whole response
	}
	defer answer.Body.Close()
	if answer.StatusCode/100 != 2 {
		return 0, visit.Errorf(visit.Invalid, "", "its receiver responded with %d, and not with 2xx", answer.StatusCode)
	}
	return answer.StatusCode, nil
}

// KeyText returns a signing key in the form in which receivers need it (whsec_…, as in Standard Webhooks).
func KeyText(key []byte) string { return "whsec_" + base64.StdEncoding.EncodeToString(key) }

// sign returns the signature of a call in the format of Standard Webhooks.
func sign(key []byte, id, timestamp, body string) string {
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(id + "." + timestamp + "." + body))
	return "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))
}

// transport returns a transport for one call. It makes a new connection for each call, follows no redirects and uses
// no proxy, so that the address of every connection is checked.
func transport(private bool) *http.Transport {
	dialer := &net.Dialer{}
	if !private {
		dialer.Control = func(_, address string, _ syscall.RawConn) error { return checkPublic(address) }
	}
	return &http.Transport{DialContext: dialer.DialContext, DisableKeepAlives: true, MaxResponseHeaderBytes: mostHeaders}
}

// checkPublic refuses an address that is not public. It checks the address of the actual connection, so a host name cannot hide a
// private address.
func checkPublic(address string) error {
	at, err := netip.ParseAddrPort(address)
	if err == nil && !isPublic(at.Addr()) {
		return fmt.Errorf("its host is at %v, which is not a public address: if that is intended, add it again with --private", at.Addr())
	}
	return err
}

// specialNetworks are networks that are not public, or whose IPv6 addresses contain an IPv4 address and lead to it.
// The methods of netip.Addr, such as IsPrivate, do not recognize these networks.
var specialNetworks = []netip.Prefix{
	netip.MustParsePrefix("0.0.0.0/8"), netip.MustParsePrefix("100.64.0.0/10"), netip.MustParsePrefix("192.0.0.0/24"),
	netip.MustParsePrefix("198.18.0.0/15"), netip.MustParsePrefix("240.0.0.0/4"), // reserved networks
	netip.MustParsePrefix("2001::/32"), netip.MustParsePrefix("2002::/16"), // Teredo and 6to4: contain IPv4 addresses
}

// isPublic reports whether an address is public. Public IPv6 addresses are in 2000::/3.
func isPublic(a netip.Addr) bool {
	a = a.Unmap()
	return a.IsGlobalUnicast() && !a.IsPrivate() && (a.Is4() || a.As16()[0]>>5 == 1) &&
		!slices.ContainsFunc(specialNetworks, func(p netip.Prefix) bool { return p.Contains(a) })
}

// CheckURL checks the URL of a webhook. If private is true, its host may be a private address.
func CheckURL(text string, private bool) error {
	at, err := url.Parse(text)
	switch {
	case err != nil || at.Hostname() == "" || at.Scheme != "http" && at.Scheme != "https" || at.Fragment != "":
		return visit.Errorf(visit.Invalid, "url",
			"%.128q is not an address that can be called: write one like https://hook.example/footfall", text)
	case at.User != nil:
		return visit.Errorf(visit.Invalid, "url", "it has a name or a password: leave them out, because each call is signed")
	case len(text) > longestURL:
		return visit.Errorf(visit.Invalid, "url", "it is longer than %d bytes: shorten it", longestURL)
	}
	if a, err := netip.ParseAddr(at.Hostname()); err == nil && !private && !isPublic(a) {
		return visit.Errorf(visit.Invalid, "url", "%v is not a public address: if that is intended, add it with --private", a)
	}
	return nil
}
