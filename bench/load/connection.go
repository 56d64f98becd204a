package load

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
)

// connection sends requests as they are written, and reads of the answers what a client needs to be
// cheap.
type connection struct {
	net.Conn
	answers *bufio.Reader
	request []byte // that is to be sent
}

// dial connects to a host, which url names. The connection closes when ctx ends.
func dial(ctx context.Context, url string) (*connection, error) {
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", HostOf(url))
	if err != nil {
		return nil, err
	}
	context.AfterFunc(ctx, func() { conn.Close() })
	return &connection{Conn: conn, answers: bufio.NewReaderSize(conn, 1024)}, nil
}

// HostOf is host and port of a URL.
func HostOf(url string) string { return strings.TrimPrefix(url, "http://") }

// exchange sends the request, reads the answer to its end, whose length it must tell, and returns
// its status.
func (c *connection) exchange() (status int, err error) {
	if _, err := c.Write(c.request); err != nil {
		return 0, err
	}
	for length := -1; ; {
		line, err := c.answers.ReadSlice('\n')
		if err != nil {
			return 0, err
		}
		line = bytes.TrimRight(line, "\r\n")
		name, value, _ := bytes.Cut(line, []byte(": "))
		switch {
		case status == 0:
			_, code, _ := bytes.Cut(line, []byte(" "))
			if status, err = strconv.Atoi(string(code[:min(3, len(code))])); err != nil {
				return 0, fmt.Errorf("%q begins no answer", line)
			}
		case len(line) == 0 && length < 0:
			return 0, errors.New("the answer does not tell its length")
		case len(line) == 0:
			_, err := c.answers.Discard(length)
			return status, err
		case bytes.EqualFold(name, []byte("Content-Length")):
			if length, err = strconv.Atoi(string(value)); err != nil {
				return 0, err
			}
		}
	}
}
