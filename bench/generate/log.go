package generate

import (
	"bufio"
	"fmt"
	"io"
)

// Agents of a log's lines. The last is a crawler's.
var agents = []string{
	"Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0",
	"Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0 Safari/537.36",
	"Mozilla/5.0 (iPhone; CPU iPhone OS 18_5 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.5 Mobile/15E148 Safari/604.1",
	"Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)",
}

// WriteLog writes the visits as an access log in the format Combined with the virtual host in
// front, and as many other lines as servers write: of five lines two are visits.
func WriteLog(w io.Writer, set Set) error {
	drawn := drawVisits(set.Completed())
	out := bufio.NewWriterSize(w, 1<<20)
	var at string
	var second int64
	line := func(visitor int32, host, path string, status, agent int) {
		fmt.Fprintf(out, "%s %s - - [%s] \"GET %s HTTP/1.1\" %d 5120 \"-\" %q\n", host, drawn.address(visitor), at, path, status, agents[agent])
	}
	for n, page := range drawn.page {
		moment := drawn.moment(n)
		if moment.Unix() != second {
			second, at = moment.Unix(), moment.Format("02/Jan/2006:15:04:05 -0700")
		}
		visitor, host := drawn.visitor[n], siteName(int(drawn.siteOf[page]))
		agent := int(visitor) % (len(agents) - 1)
		line(visitor, host, drawn.uri(int(page))[len(host):], 200, agent)
		line(visitor, host, "/assets/style.css", 200, agent)
		switch n % 4 {
		case 0:
			line(visitor, host, "/wp-login.php", 404, agent)
		case 2:
			line(visitor, host, "/", 200, len(agents)-1)
		}
	}
	return out.Flush()
}
