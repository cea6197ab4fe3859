package query

import (
	"bufio"
	"fmt"
	"io"
	"math/rand/v2"
	"strconv"
	"time"
)

// bytesPerLine is about how long a line of the corpus is. It spreads the lines over the
// days, so that a corpus of any size has about Days of them.
const bytesPerLine = 320

// Days is the time that a corpus covers.
const Days = 7

// Begin is the time of the first lines.
var Begin = time.Date(2026, 5, 4, 0, 0, 0, 0, time.UTC)

// A Corpus says what was written, and what questions can look for.
type Corpus struct {
	Lines, Bytes int64
	Needle       string // a word of one message
	Trace        string // the trace id of some lines
}

// needle is in the message of one line, three fifths into the corpus.
const needle = "kx7qhaystack93"

// Write writes lines of NDJSON, as Rollway stores them, until there are size bytes: 40 %
// are messages of system daemons, 60 % events of services with eight attributes, a
// trace and a span. Times rise from line to line, so that they identify it. A size and
// a seed give the same bytes everywhere.
func Write(w io.Writer, size int64, seed uint64) (Corpus, error) {
	out := bufio.NewWriterSize(w, 1<<20)
	g := generator{rand: rand.New(rand.NewPCG(seed, 1)), now: Begin}
	g.customers = rand.NewZipf(g.rand, 1.1, 20, 499_999)
	step := max(2, Days*24*time.Hour.Microseconds()*bytesPerLine/max(size, bytesPerLine))
	c := Corpus{Needle: needle}
	for c.Bytes < size {
		g.now = g.now.Add(time.Duration(1+g.rand.Int64N(2*step-2)) * time.Microsecond)
		switch half := c.Bytes > size/5*3; {
		case half && !g.planted:
			g.planted = true
			g.begin("INFO", "restored archive "+needle+" from cold storage", "storage-api")
			g.line = append(g.line, "}\n"...)
		case g.rand.IntN(100) < 40:
			g.system()
		default:
			g.event()
			if half && c.Trace == "" {
				c.Trace = g.trace
			}
		}
		n, err := out.Write(g.line)
		if err != nil {
			return c, err
		}
		c.Bytes += int64(n)
		c.Lines++
	}
	return c, out.Flush()
}

// A generator makes one line after the other.
type generator struct {
	rand      *rand.Rand
	customers *rand.Zipf
	now       time.Time
	line      []byte
	trace     string // of the last event
	planted   bool   // the needle was written
}

// begin begins the line with the fields that all have.
func (g *generator) begin(level, msg, service string) {
	g.line = g.now.AppendFormat(append(g.line[:0], `{"time":"`...), "2006-01-02T15:04:05.000000000Z")
	g.line = fmt.Appendf(g.line, `","level":%q,"msg":%s,"service":%q`, level, strconv.Quote(msg), service)
}

func (g *generator) hex(bytes int) string {
	text := ""
	for ; bytes > 0; bytes -= 8 {
		text += fmt.Sprintf("%016x", g.rand.Uint64())
	}
	return text
}

func (g *generator) address() string {
	return fmt.Sprintf("%d.%d.%d.%d", 11+g.rand.IntN(200), g.rand.IntN(256), g.rand.IntN(256), 1+g.rand.IntN(254))
}

func pick[T any](g *generator, from []T) T { return from[g.rand.IntN(len(from))] }

// systemTexts are forms of messages that daemons write, with what varies in them.
var systemTexts = []struct {
	level, service string
	text           func(g *generator) string
}{
	{"NOTICE", "sshd", func(g *generator) string {
		return fmt.Sprintf("authentication failure; logname= uid=0 euid=0 tty=NODEVssh ruser= rhost=%s user=%s", g.address(), pick(g, users))
	}},
	{"INFO", "sshd", func(g *generator) string {
		return fmt.Sprintf("Accepted publickey for %s from %s port %d ssh2: RSA SHA256:%s", pick(g, users), g.address(), 1024+g.rand.IntN(64000), g.hex(16))
	}},
	{"INFO", "ftpd", func(g *generator) string {
		return fmt.Sprintf("connection from %s () at %s", g.address(), g.now.Format(time.ANSIC))
	}},
	{"NOTICE", "httpd", func(g *generator) string {
		return fmt.Sprintf("jk2_init() Found child %d in scoreboard slot %d", g.rand.IntN(65536), g.rand.IntN(12))
	}},
	{"WARN", "zookeeper", func(g *generator) string {
		return fmt.Sprintf("Connection broken for id %d, my id = %d, error = java.io.EOFException", g.rand.Uint64N(1e12), 1+g.rand.IntN(5))
	}},
	{"DEBUG", "zookeeper", func(g *generator) string {
		return fmt.Sprintf("Received connection request /%s:%d sid:0x%x", g.address(), 1024+g.rand.IntN(64000), g.rand.Uint64())
	}},
	{"INFO", "nova-api", func(g *generator) string {
		return fmt.Sprintf("[req-%s %s] %s GET /v2/%s/servers/detail HTTP/1.1 status: 200 len: %d time: 0.%07d", g.hex(16), g.hex(16), g.address(), g.hex(16), 1500+g.rand.IntN(900), g.rand.IntN(1e7))
	}},
	{"INFO", "nova-compute", func(g *generator) string {
		return fmt.Sprintf("[instance: %s] Took %d.%02d seconds to build instance.", g.hex(16), 15+g.rand.IntN(10), g.rand.IntN(100))
	}},
	{"INFO", "kernel", func(g *generator) string {
		return fmt.Sprintf("[%d.%06d] TCP: request_sock_TCP: Possible SYN flooding on port %d. Sending cookies.", g.rand.IntN(1e6), g.rand.IntN(1e6), 1024+g.rand.IntN(64000))
	}},
}

var (
	users    = []string{"root", "admin", "test", "guest", "oracle", "deploy", "backup", "postgres", "git", "nagios"}
	services = []string{
		"payment-api", "order-api", "cart-api", "user-api", "search-api", "stock-api", "price-api", "mail-worker", "invoice-worker", "storage-api",
		"auth-api", "session-api", "image-worker", "report-worker", "gateway", "catalog-api", "review-api", "shipping-api", "fraud-api", "ledger",
	}
	regions = []string{"eu-west-1", "eu-central-1", "us-east-1", "us-west-2", "ap-south-1"}
	methods = []string{"GET", "GET", "GET", "POST", "PUT", "DELETE"}
	paths   = []string{"/v1/charge", "/v1/orders", "/v1/orders/items", "/v1/cart", "/v1/users", "/v1/search", "/v2/stock", "/v2/prices", "/healthz", "/v1/sessions"}
)

func (g *generator) system() {
	t := &systemTexts[g.rand.IntN(len(systemTexts))]
	g.begin(t.level, t.text(g), t.service)
	g.line = append(g.line, "}\n"...)
}

// event is a line of a service. Some events of a request follow each other and share its
// trace.
func (g *generator) event() {
	if g.trace == "" || g.rand.IntN(4) == 0 {
		g.trace = g.hex(16)
	}
	level, msg, status, failed := "INFO", "", 200, false
	switch n := g.rand.IntN(1000); {
	case n < 30:
		level, status, failed = "ERROR", 500+g.rand.IntN(5), true
		msg = fmt.Sprintf("call of backend %d failed: context deadline exceeded after %d ms", g.rand.IntN(64), 1000+g.rand.IntN(4000))
	case n < 60:
		level, status = "WARN", 402
		msg = fmt.Sprintf("card of order %d declined (code %d)", g.rand.Uint64N(1e9), 100+g.rand.IntN(900))
	case n < 100:
		level, status = "WARN", 507
		msg = fmt.Sprintf("upload %s refused, quota of volume v%d exceeded", g.hex(8), g.rand.IntN(200))
	case n < 250:
		level = "DEBUG"
		msg = fmt.Sprintf("cache miss for key item:%d, loaded %d rows", g.rand.Uint64N(1e8), g.rand.IntN(500))
	case n < 600:
		msg = fmt.Sprintf("request %s done, %d rows sent in %d parts, connection kept", g.hex(8), g.rand.IntN(5000), 1+g.rand.IntN(8))
	default:
		msg = fmt.Sprintf("order %d of basket %s moved to state %s", g.rand.Uint64N(1e9), g.hex(8), pick(g, []string{"paid", "packed", "sent", "delivered"}))
	}
	service := pick(g, services)
	g.begin(level, msg, service)
	g.line = fmt.Appendf(g.line, `,"trace_id":%q,"span_id":%q`, g.trace, g.hex(8))
	if failed {
		g.line = append(g.line, `,"error":{"kind":"timeout","msg":"context deadline exceeded"`...)
		if g.rand.IntN(3) == 0 {
			g.line = fmt.Appendf(g.line, `,"stack":"goroutine %d [running]:\nmain.(*client).call(0xc%09x)\n\t/src/%s/client.go:%d\nmain.serve(0xc%09x)\n\t/src/%s/serve.go:88"`,
				g.rand.IntN(1e5), g.rand.Uint64N(1<<36), service, 40+g.rand.IntN(200), g.rand.Uint64N(1<<36), service)
		}
		g.line = append(g.line, '}')
	}
	g.line = fmt.Appendf(g.line, `,"attrs":{"customer_id":"cus_%06d","method":%q,"path":%q,"status":%d,"took_us":%d,"bytes":%d,"region":%q,"host":"%s-7d9f8b6c5-%02d"}}`+"\n",
		g.customers.Uint64(), pick(g, methods), pick(g, paths), status, 200+int64(g.rand.ExpFloat64()*40_000), g.rand.IntN(100_000), pick(g, regions), service, g.rand.IntN(12))
}
