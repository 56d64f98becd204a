package logs

import (
	"bytes"
)

// found stores a value in r.line, if the parser knows the value's name in this kind of object (where).
func (r *jsonReader) found(where place, name, value []byte) {
	switch where {
	case atTop:
		r.foundAtTop(name, value)
	case inRequest:
		r.foundInRequest(name, value)
	case inHeaders:
		switch {
		case bytes.EqualFold(name, []byte("User-Agent")):
			r.agent(value)
		case bytes.EqualFold(name, []byte("Referer")):
			r.line.Referer = value
		}
	}
}

// foundAtTop stores a value of the outermost object of a line from nginx, Traefik or Caddy. In nginx, the operator chooses
// the names. So foundAtTop accepts the names of nginx's variables, and other common names.
func (r *jsonReader) foundAtTop(name, value []byte) {
	l := r.line
	switch string(name) {
	case "remote_addr", "remote_ip", "ip", "client":
		r.client(1, value)
	case "client_ip", "ClientHost":
		r.client(2, value)
	case "server_name", "vhost", "RequestHost":
		r.host(1, value)
	case "host", "http_host", "RequestAddr":
		r.host(2, value)
	case "request":
		l.setRequest(value)
		r.targetRank, r.request = 3, true
	case "request_method", "method", "RequestMethod":
		if len(l.Method) == 0 {
			l.Method = value
		}
	case "uri", "url", "path":
		r.target(1, value)
	case "request_uri", "RequestPath":
		r.target(2, value)
	case "status", "DownstreamStatus":
		l.Status, r.status = parseStatus(value)
	case "time", "timestamp", "@timestamp", "ts":
		r.time(1, value)
	case "time_local", "time_iso8601", "msec", "StartLocal", "StartUTC":
		r.time(2, value)
	case "http_user_agent", "user_agent", "agent", "request_User-Agent":
		r.agent(value)
	case "log":
		r.wrapped = value
	case "http_referer", "http_referrer", "referer", "referrer", "request_Referer":
		l.Referer = value
	}
	if string(name) == "RequestPath" {
		l.Format = Traefik
	}
}

// foundInRequest stores a value of the object "request" in a line from Caddy.
func (r *jsonReader) foundInRequest(name, value []byte) {
	switch string(name) {
	case "remote_ip":
		r.client(1, value)
	case "client_ip":
		r.client(2, value)
	case "host":
		r.host(2, value)
	case "method":
		r.line.Method = value
	case "uri":
		r.target(2, value)
	}
}

func (r *jsonReader) client(rank int, value []byte) {
	if rank > r.clientRank && len(value) > 0 {
		r.clientRank, r.line.Client = rank, value
	}
}

func (r *jsonReader) host(rank int, value []byte) {
	if rank > r.hostRank && len(value) > 0 && string(value) != "-" {
		r.hostRank, r.line.Host = rank, value
	}
}

func (r *jsonReader) target(rank int, value []byte) {
	if rank > r.targetRank {
		r.targetRank, r.line.Target, r.request = rank, value, true
	}
}

func (r *jsonReader) time(rank int, value []byte) {
	if rank <= r.timeRank {
		return
	}
	if read, ahead, ok := parseTime(value); ok {
		r.timeRank, r.line.Time, r.line.ahead = rank, read, ahead
	} else {
		r.badTime = true
	}
}

func (r *jsonReader) agent(value []byte) {
	r.line.Agent, r.line.HasAgent = value, true
}
