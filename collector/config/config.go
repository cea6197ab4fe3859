// Package config holds the settings of a collector: their defaults, the strict
// reading of the YAML file they come from, and their printing. One table, in
// fields.go, drives all three.
package config

import (
	"fmt"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/rollway/rollway/collector/forwarded"
)

// Config is everything a collector can be told. The zero Config is not usable;
// start from Default. A Config is a plain value: copying it is safe.
type Config struct {
	Listen    string // listen: host:port for HTTP; port 0 takes a free one
	ListenTCP string // listen_tcp: host:port for NDJSON over plain TCP; empty: off
	// ListenGRPC is listen_grpc: host:port for gRPC, which listen takes as well;
	// empty: off; "auto": port 4317 of listen's host if listen has port 4318,
	// else off.
	ListenGRPC string
	// DebugListen is debug_listen: host:port for profiles; empty: off.
	DebugListen string

	// ListenSyslog is listen_syslog: addresses for syslog, separated by blanks, as
	// ParseAddrs reads them; empty: off.
	ListenSyslog string
	// ListenForward is listen_forward: the same for the Fluent forward protocol.
	ListenForward string

	Data  string // data: the folder that holds the journal
	Hosts string // hosts: names, separated by blanks, that readers and web pages may address the collector by

	Access  Access  // access
	TLS     TLS     // tls
	Proxies Proxies // proxies

	// Enrich and Rules are enrich and rules: what events get and what is done to
	// them, as package enrich reads it; nil: nothing.
	Enrich *Block
	Rules  *Block

	Limits   Limits   // limits
	Journal  Journal  // journal
	Rejected Rejected // rejected
	Forward  Forward  // forward
	Kafka    Kafka    // kafka
	Timeouts Timeouts // timeouts
}

// Rejected is what becomes of events that cannot be stored as they are.
type Rejected struct {
	KeepSize Size // keep_size: bytes of them kept below data, the oldest go first; 0: none
}

// Access says who may do what.
type Access struct {
	Tokens string // tokens: a file of tokens, see package access; empty: everybody may do everything
}

// TLS is how HTTP and the addresses that begin with tls:// are encrypted. Empty:
// HTTP is not, and there are none of those.
type TLS struct {
	Cert     string // cert: PEM file of the certificate, intermediates behind it
	Key      string // key: PEM file of its key
	ClientCA string // client_ca: PEM file of authorities; clients must have a certificate of one of them
}

// Proxies are those between clients and HTTP, see package forwarded.
type Proxies struct {
	Trusted string // trusted: their networks or addresses, separated by blanks; empty: none
	Header  string // header: what they name clients in, x-forwarded-for or forwarded
}

// Limits bound what one request, one event and all requests together may take.
type Limits struct {
	MaxBody     Size          // max_body: bytes of one request as sent
	MaxUnpacked Size          // max_unpacked: bytes of one request after decompression
	MaxEvent    Size          // max_event: bytes of the line that one event becomes
	MaxDepth    int           // max_depth: levels of nesting in one event
	MaxFields   int           // max_fields: attributes of one event, keys inside of their values not counted
	MaxKey      Size          // max_key: bytes of a key of an event, at any depth
	MaxValue    Size          // max_value: bytes of a text or number, at any depth; 0: no limit but max_event
	MaxEvents   int           // max_events: events in one request
	MaxFuture   time.Duration // max_future: how far ahead of its receipt an event's time may be without being marked; 0: any
	MaxPast     time.Duration // max_past: the same, behind
	InFlight    Size          // in_flight: bytes of all requests being worked on, unpacked and as canonical lines, with their headers
	MaxConns    int           // max_connections: of HTTP and gRPC at a time; 0: what the limit on open files leaves room for
	MaxStreams  int           // max_streams: connections at a time at each address that is not for HTTP
	UDPBuffer   Size          // udp_buffer: bytes of datagrams that the system is asked to keep until they are read
}

// Journal is how lines are kept.
type Journal struct {
	SegmentSize Size          // segment_size: bytes after which a new file is begun
	Durability  Durability    // durability: what a 2xx answer promises
	MaxSize     Size          // max_size: bytes at which new lines are refused; 0: only the disk's end
	RetainSize  Size          // retain_size: bytes kept, oldest segments go first; 0: all
	RetainAge   time.Duration // retain_age: time kept since a segment was last written to, whatever its lines' times; 0: for ever
	Compression Compression   // compression: of segments that are full
	MaxKeys     int           // max_keys: idempotency keys remembered
	KeyAge      time.Duration // key_age: time for which they are remembered
}

// Forward is what is asked of clients of the Fluent forward protocol.
type Forward struct {
	SharedKeyFile string // shared_key_file: a file that holds the secret that clients must know; empty: nothing is asked
	UsersFile     string // users_file: a file of lines USER:PASSWORD, one of which clients must know as well; empty: no user is asked for
}

// Kafka is the sink that passes lines on to a topic of Apache Kafka.
type Kafka struct {
	Brokers      string        // brokers: host:port of some brokers, separated by blanks; empty: no sink
	Topic        string        // topic: where lines go
	Key          string        // key: top-level key of a line whose value becomes the record's key; empty: none
	Compression  string        // compression: none, gzip, snappy, lz4 or zstd
	TLS          string        // tls: on or off
	TLSCA        string        // tls_ca: PEM file of authorities; empty: the system's
	TLSCert      string        // tls_cert: PEM file of a certificate to show; empty: none
	TLSKey       string        // tls_key: PEM file of its key
	SASL         string        // sasl: none, plain, scram-sha-256 or scram-sha-512
	User         string        // user: for sasl
	PasswordFile string        // password_file: a file that holds the user's password
	PasswordEnv  string        // password_env: a variable of the environment that holds it, in place of the file
	MaxRecord    Size          // max_record: bytes of a record, as the topic's max.message.bytes
	MaxEvents    int           // max_events: lines in a batch
	MaxBytes     Size          // max_bytes: bytes in a batch
	MaxAge       time.Duration // max_age: for a batch to fill up
	WhenFull     string        // when_full: hold or drop_oldest
}

// Values of Kafka.WhenFull.
const (
	Hold       = "hold"        // retention waits for the sink, and a full journal refuses lines
	DropOldest = "drop_oldest" // retention may delete what the sink has not delivered
)

// Timeouts end connections that stand still.
type Timeouts struct {
	ReadHeader time.Duration // read_header: for the request line and the headers
	Read       time.Duration // read: for a whole request, body included
	Write      time.Duration // write: for an answer; a stream of lines is bounded per write instead
	Query      time.Duration // query: for a query to search, without the time that its client takes for the lines
	Idle       time.Duration // idle: for the next request on a kept connection
	Stream     time.Duration // stream: for what comes next over a TCP connection that is not HTTP
	Linger     time.Duration // linger: for a last request on a kept connection once a stop was asked for
	Shutdown   time.Duration // shutdown: for running requests once a stop was asked for
}

// Durability is what a 2xx answer promises about the lines it stands for.
type Durability string

const (
	Buffered Durability = "buffered" // they survive the end of the process
	Synced   Durability = "synced"   // they survive the end of the machine
)

// Compression is how segments are kept that are no longer written.
type Compression string

const (
	Zstd          Compression = "zstd"
	NoCompression Compression = "none"
)

// Size counts bytes.
type Size int64

const (
	KiB Size = 1 << 10
	MiB Size = 1 << 20
	GiB Size = 1 << 30
	TiB Size = 1 << 40
)

// String writes s in the largest binary unit that leaves no rest: 64MiB, 1000.
func (s Size) String() string {
	for _, u := range []struct {
		size Size
		name string
	}{{TiB, "TiB"}, {GiB, "GiB"}, {MiB, "MiB"}, {KiB, "KiB"}} {
		if s >= u.size && s%u.size == 0 {
			return fmt.Sprintf("%d%s", s/u.size, u.name)
		}
	}
	return fmt.Sprintf("%d", int64(s))
}

// Default returns the settings used where a file and flags say nothing.
func Default() Config {
	return Config{
		Listen:     "127.0.0.1:4318",
		ListenGRPC: Auto,
		Data:       "./data",
		Proxies:    Proxies{Header: forwarded.XForwardedFor},
		Limits: Limits{
			MaxBody:     16 * MiB,
			MaxUnpacked: 64 * MiB,
			MaxEvent:    1 * MiB,
			MaxDepth:    64,
			MaxFields:   1024,
			MaxKey:      1 * KiB,
			MaxEvents:   100_000,
			MaxFuture:   24 * time.Hour,
			MaxPast:     365 * 24 * time.Hour,
			InFlight:    256 * MiB,
			MaxStreams:  1024,
			UDPBuffer:   4 * MiB,
		},
		Journal: Journal{
			SegmentSize: 128 * MiB,
			Durability:  Buffered,
			Compression: Zstd,
			MaxKeys:     1_000_000,
			KeyAge:      time.Hour,
		},
		Rejected: Rejected{KeepSize: 64 * MiB},
		Kafka: Kafka{
			Topic:       "logs",
			Compression: "none",
			TLS:         "off",
			SASL:        "none",
			MaxRecord:   1_000_000,
			MaxEvents:   1000,
			MaxBytes:    1 * MiB,
			MaxAge:      100 * time.Millisecond,
			WhenFull:    Hold,
		},
		Timeouts: Timeouts{
			ReadHeader: 10 * time.Second,
			Read:       time.Minute,
			Write:      30 * time.Second,
			Query:      2 * time.Minute,
			Idle:       11 * time.Minute,
			Stream:     time.Hour,
			Linger:     250 * time.Millisecond,
			Shutdown:   10 * time.Second,
		},
	}
}

// Auto lets a setting follow from others.
const Auto = "auto"

// AddrGRPC is the address that ListenGRPC stands for; "": none.
func (c *Config) AddrGRPC() string {
	if c.ListenGRPC != Auto {
		return c.ListenGRPC
	}
	if host, port, err := net.SplitHostPort(c.Listen); err == nil && port == "4318" {
		return net.JoinHostPort(host, "4317")
	}
	return ""
}

// Set gives the setting named key, such as "limits.max_body", the value that
// text stands for, by the same rules as the file. The error does not name the
// key: the caller knows where the text came from.
func (c *Config) Set(key, text string) error {
	for _, f := range fields {
		if f.key == key {
			return f.set(c, text)
		}
	}
	return fmt.Errorf("no setting is called %s", key)
}

// Keys returns the keys of all settings, in the order in which they are documented.
func Keys() []string {
	keys := make([]string, len(fields))
	for i, f := range fields {
		keys[i] = f.key
	}
	return keys
}

// Check returns an error where settings contradict each other. Each setting by
// itself was checked when it was set.
func (c *Config) Check() error {
	var list Errors
	for _, e := range c.contradictions() {
		list = append(list, &Error{Key: e.key, Message: e.message})
	}
	if len(list) == 0 {
		return nil
	}
	return list
}

// Difference returns the key of the first setting that c and other do not have
// in common, or "".
func (c *Config) Difference(other *Config) string {
	for _, f := range fields {
		if f.yaml(c) != f.yaml(other) {
			return f.key
		}
	}
	return ""
}

type contradiction struct{ key, message string }

func (c *Config) contradictions() (list []contradiction) {
	l, j := c.Limits, c.Journal
	if l.MaxEvent > l.MaxUnpacked {
		list = append(list, contradiction{"limits.max_event",
			fmt.Sprintf("%v is more than limits.max_unpacked (%v): no request could carry such an event", l.MaxEvent, l.MaxUnpacked)})
	}
	if 2*l.MaxUnpacked > l.InFlight {
		list = append(list, contradiction{"limits.in_flight",
			fmt.Sprintf("%v is less than twice limits.max_unpacked (%v): the largest request allowed could never be taken", l.InFlight, l.MaxUnpacked)})
	}
	if (c.TLS.Cert == "") != (c.TLS.Key == "") {
		list = append(list, contradiction{"tls.cert", "tls.cert and tls.key are of use together only"})
	}
	if c.TLS.ClientCA != "" && c.TLS.Cert == "" {
		list = append(list, contradiction{"tls.client_ca", "certificates of clients are asked for within TLS only: set tls.cert and tls.key too"})
	}
	if c.Access.Tokens != "" && c.ListenTCP != "" && !loopback(c.ListenTCP) {
		list = append(list, contradiction{"listen_tcp", fmt.Sprintf("%s is open to the network, and NDJSON over TCP has no place for a token (access.tokens): listen on 127.0.0.1, or take events by HTTP", c.ListenTCP)})
	}
	if j.MaxSize > 0 && j.MaxSize < j.SegmentSize {
		list = append(list, contradiction{"journal.max_size",
			fmt.Sprintf("%v is less than one segment (journal.segment_size is %v)", j.MaxSize, j.SegmentSize)})
	}
	if j.MaxSize > 0 && j.RetainSize > j.MaxSize {
		list = append(list, contradiction{"journal.retain_size",
			fmt.Sprintf("%v is more than journal.max_size (%v): new lines would be refused before old ones are removed", j.RetainSize, j.MaxSize)})
	}
	list = append(list, c.Kafka.contradictions()...)
	list = append(list, c.streamContradictions("listen_syslog", c.ListenSyslog)...)
	if c.Forward.SharedKeyFile == "" {
		list = append(list, c.streamContradictions("listen_forward", c.ListenForward)...)
	}
	if c.Forward.UsersFile != "" && c.Forward.SharedKeyFile == "" {
		list = append(list, contradiction{"forward.users_file", "users are asked for beside a shared key only: set forward.shared_key_file too"})
	}
	return list
}

// streamContradictions is about the addresses of one setting.
func (c *Config) streamContradictions(key, text string) (list []contradiction) {
	addrs, _ := ParseAddrs(text, "udp", "tcp", "tls") // it was checked
	for _, a := range addrs {
		switch {
		case a.Network == "tls" && c.TLS.Cert == "":
			list = append(list, contradiction{key, a.String() + " begins with tls://: set tls.cert and tls.key too"})
		case c.Access.Tokens != "" && !loopback(a.Host) && (a.Network != "tls" || c.TLS.ClientCA == ""):
			list = append(list, contradiction{key, a.String() + " is open to the network, and its protocol has no place for a token (access.tokens): listen on 127.0.0.1, or use tls:// and tls.client_ca"})
		}
	}
	return list
}

func (k *Kafka) contradictions() (list []contradiction) {
	if k.TLS != "on" && (k.TLSCA != "" || k.TLSCert != "" || k.TLSKey != "") {
		list = append(list, contradiction{"kafka.tls", "certificates are of use within TLS only: set kafka.tls to on"})
	}
	if (k.TLSCert == "") != (k.TLSKey == "") {
		list = append(list, contradiction{"kafka.tls_cert", "kafka.tls_cert and kafka.tls_key are of use together only"})
	}
	secrets := 0
	for _, s := range []string{k.PasswordFile, k.PasswordEnv} {
		if s != "" {
			secrets++
		}
	}
	switch {
	case k.SASL == "none" && (k.User != "" || secrets > 0):
		list = append(list, contradiction{"kafka.sasl", "there is a user or a password, but kafka.sasl is none"})
	case k.SASL != "none" && (k.User == "" || secrets != 1):
		list = append(list, contradiction{"kafka.sasl", k.SASL + " takes kafka.user and one of kafka.password_file and kafka.password_env"})
	case k.SASL == "plain" && k.TLS != "on" && !k.local():
		list = append(list, contradiction{"kafka.sasl", "plain sends the password as it is: set kafka.tls to on, or use scram-sha-512"})
	}
	return list
}

// local reports whether all brokers are on this machine.
func (k *Kafka) local() bool {
	for _, broker := range strings.Fields(k.Brokers) {
		if !loopback(broker) {
			return false
		}
	}
	return true
}

// loopback reports whether only this machine can reach addr.
func loopback(addr string) bool {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return false
	}
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// YAML writes all settings as a file that Load reads back to the same Config.
func (c *Config) YAML() string {
	var b strings.Builder
	var open []string // sections written, so that each heading comes once
	for _, f := range fields {
		if f.isBlock() {
			b.WriteString(f.key + ": " + f.yaml(c) + "\n")
			continue
		}
		indent, name := "", f.key
		if section, rest, ok := strings.Cut(f.key, "."); ok {
			if !slices.Contains(open, section) {
				open = append(open, section)
				b.WriteString(section + ":\n")
			}
			indent, name = "  ", rest
		}
		fmt.Fprintf(&b, "%s%s: %s\n", indent, name, f.yaml(c))
	}
	return b.String()
}
