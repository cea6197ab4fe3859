// Package config defines the settings of a collector. The tags of Config drive their
// defaults, the strict parser of the YAML file, and printing.
package config

import (
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/rollway/rollway/collector/normalize"
)

// Config is the configuration of a collector. The zero Config is not usable; start from
// Default. A Config may be copied.
//
// The tags of a field are its key in the file, the default, and what is valid: a range
// in the setting's own unit ("or 0" admits 0 too, * is no bound) or the name of a check.
type Config struct {
	Listen      string `key:"listen" default:"127.0.0.1:4318" check:"addr"` // host:port for HTTP; port 0 takes a free one
	ListenGRPC  string `key:"listen_grpc" default:"auto" check:"addr auto"` // an additional host:port for gRPC; empty: off; auto: port 4317 if listen has 4318
	DebugListen string `key:"debug_listen" check:"addr or empty"`           // host:port for profiles; empty: off

	ListenTCP        string `key:"listen_tcp" check:"addrs tcp tls"`        // addresses for NDJSON, separated by blanks: host:port, tls://host:port; empty: off
	ListenSyslog     string `key:"listen_syslog" check:"addrs udp tcp tls"` // the same for syslog
	ListenGELF       string `key:"listen_gelf" check:"addrs udp tcp tls"`   // the same for GELF
	ListenLumberjack string `key:"listen_lumberjack" check:"addrs tcp tls"` // the same for the Lumberjack protocol
	ListenForward    string `key:"listen_forward" check:"addrs tcp tls"`    // the same for the Fluent forward protocol

	Data  string `key:"data" default:"./data" check:"not empty"` // the folder of the journal
	Hosts string `key:"hosts"`                                   // names, separated by blanks, under which readers, Prometheus and web pages may address the collector

	Access  Access  `key:"access"`
	TLS     TLS     `key:"tls"`
	Proxies Proxies `key:"proxies"`
	UI      UI      `key:"ui"`

	// Package enrich parses these; nil: none.
	Enrich *Block `key:"enrich"`
	Rules  *Block `key:"rules"`

	Limits    Limits    `key:"limits"`
	Normalize Normalize `key:"normalize"`
	Journal   Journal   `key:"journal"`
	Rejected  Rejected  `key:"rejected"`
	Forward   Forward   `key:"forward"`
	Kafka     Kafka     `key:"kafka"`
	Timeouts  Timeouts  `key:"timeouts"`
}

// Access configures tokens.
type Access struct {
	Tokens string `key:"tokens"` // a file of tokens, see package access; empty: everybody may do everything
}

// TLS configures encryption of HTTP and of tls:// addresses. Empty: HTTP is plain, and
// tls:// addresses are errors.
type TLS struct {
	Cert     string `key:"cert"`      // PEM file of the certificate, followed by intermediates
	Key      string `key:"key"`       // PEM file of its key
	ClientCA string `key:"client_ca"` // PEM file of authorities; one must have signed the client's certificate
}

// Proxies configures trusted proxies in front of HTTP; see package forwarded.
type Proxies struct {
	Trusted string `key:"trusted" check:"proxies"`                                                // their networks or addresses, separated by blanks; empty: none
	Header  string `key:"header" default:"x-forwarded-for" check:"one x-forwarded-for forwarded"` // the header that names the client
}

// UI configures the page for people, /ui/.
type UI struct {
	Serve      string `key:"serve" default:"auto" check:"one auto on off"` // auto: if Listen is loopback, or there are tokens
	UserHeader string `key:"user_header" check:"header"`                   // in which trusted proxies name the person whose request it is; empty: in none
	RoleHeader string `key:"role_header" check:"header"`                   // in which they list roles, whose rights are those of the token of that name; empty: the person's name is the token's
}

// Limits bounds a request, an event, and all requests together.
type Limits struct {
	MaxBody     Size          `key:"max_body" default:"16MiB" range:"1KiB 4GiB"`      // bytes of one request as sent
	MaxUnpacked Size          `key:"max_unpacked" default:"64MiB" range:"1KiB 4GiB"`  // bytes of one request after decompression
	MaxRatio    int           `key:"max_ratio" default:"200" range:"10 1000000"`      // bytes after decompression for one before, looked at beyond 4 MiB
	MaxEvent    Size          `key:"max_event" default:"1MiB" range:"256 64MiB"`      // bytes of the line that one event becomes
	MaxDepth    int           `key:"max_depth" default:"64" range:"1 1000"`           // levels of nesting in one event
	MaxFields   int           `key:"max_fields" default:"1024" range:"1 1000000"`     // attributes of one event; keys inside values do not count
	MaxKey      Size          `key:"max_key" default:"1KiB" range:"16 1MiB"`          // bytes of a key of an event, at any depth
	MaxValue    Size          `key:"max_value" range:"64 64MiB or 0"`                 // bytes of a text or number, at any depth; 0: only max_event
	MaxEvents   int           `key:"max_events" default:"100000" range:"1 10000000"`  // events in one request
	MaxFuture   time.Duration `key:"max_future" default:"1d" range:"1s * or 0"`       // how far ahead of its receipt an event's time may be without being marked; 0: any
	MaxPast     time.Duration `key:"max_past" default:"365d" range:"1s * or 0"`       // the same for the past
	InFlight    Size          `key:"in_flight" default:"256MiB" range:"1MiB 1TiB"`    // bytes of all requests in progress, decompressed and as canonical lines, headers included
	MaxConns    int           `key:"max_connections" range:"1 10000000 or 0"`         // HTTP and gRPC connections at a time; 0: as many as the limit on open files allows
	MaxStreams  int           `key:"max_streams" default:"1024" range:"1 1000000"`    // connections at a time at each address other than HTTP
	MaxQuery    Size          `key:"max_query" default:"64MiB" range:"64KiB 1TiB"`    // bytes that one query holds, of lines for last= and of what pipes work on
	QueryMemory Size          `key:"query_memory" default:"256MiB" range:"1MiB 1TiB"` // bytes that all queries hold
	UDPBuffer   Size          `key:"udp_buffer" default:"4MiB" range:"4KiB 1GiB"`     // bytes of datagrams that the kernel buffers
}

// Normalize configures what is read from events.
type Normalize struct {
	Payloads string `key:"payloads" default:"on" check:"one off on"` // messages that are JSON or logfmt are read as events

	Join  string `key:"join" default:"on" check:"one off on"` // lines that only continue another one, as of stack traces, belong to its event
	Parse *Block `key:"parse"`                                // other forms of messages; package enrich parses it; nil: none

	Text string `key:"text" default:"on" check:"one off on"` // time and level of plain text, from its head
	Zone string `key:"zone" default:"UTC" check:"zone"`      // of times in text that name none: UTC, Local, or a name such as Europe/Berlin

	Fingerprint string `key:"fingerprint" default:"on" check:"one off on"` // of errors, in error.fingerprint

	Time         Words `key:"time"`          // names read as time besides those of docs/NAMES.md
	Level        Words `key:"level"`         // the same for level
	Msg          Words `key:"msg"`           // the same for msg
	Service      Words `key:"service"`       // the same for service
	Logger       Words `key:"logger"`        // the same for logger
	Source       Words `key:"source"`        // the same for source
	TraceID      Words `key:"trace_id"`      // the same for trace_id
	SpanID       Words `key:"span_id"`       // the same for span_id
	Error        Words `key:"error"`         // the same for error
	ErrorType    Words `key:"error_type"`    // the same for error.type
	ErrorMessage Words `key:"error_message"` // the same for error.message
	ErrorStack   Words `key:"error_stack"`   // the same for error.stack
	Host         Words `key:"host"`          // the same for the attribute host
	Thread       Words `key:"thread"`        // and for thread
	Method       Words `key:"method"`        // and for method
	Path         Words `key:"path"`          // and for path
	Query        Words `key:"query"`         // and for query
	Status       Words `key:"status"`        // and for status
	Remote       Words `key:"remote"`        // and for remote
	UserAgent    Words `key:"user_agent"`    // and for user_agent
}

// Keys returns the names that events are read by. The error is of one setting.
func (n *Normalize) Keys() (*normalize.Keys, error) {
	added := make(map[string][]string)
	for _, to := range normalize.Targets() {
		added[to] = *n.words(to)
	}
	keys, err := normalize.NewKeys(added)
	if bad := (*normalize.NameError)(nil); errors.As(err, &bad) {
		return nil, &Error{Key: "normalize." + strings.ReplaceAll(bad.Slot, ".", "_"), Message: bad.Message}
	}
	return keys, err
}

// words is the setting of the names that are read as to.
func (n *Normalize) words(to string) *Words {
	key := "normalize." + strings.ReplaceAll(to, ".", "_")
	c := Config{Normalize: *n}
	for _, f := range fields {
		if f.key == key {
			return f.value(&c).Addr().Interface().(*Words)
		}
	}
	panic("config: there is no " + key)
}

// Journal configures the journal.
type Journal struct {
	SegmentSize Size          `key:"segment_size" default:"128MiB" range:"1MiB 4GiB"`           // bytes after which a new file begins
	Durability  Durability    `key:"durability" default:"buffered" check:"one buffered synced"` // what a 2xx answer promises
	MaxSize     Size          `key:"max_size" range:"1MiB * or 0"`                              // bytes at which new lines are refused; 0: when the disk is full
	RetainSize  Size          `key:"retain_size" range:"1MiB * or 0"`                           // bytes kept, the oldest segments are removed first; 0: all
	RetainAge   time.Duration `key:"retain_age" range:"1m * or 0"`                              // age since the last write at which a segment is removed; 0: never
	Scrub       time.Duration `key:"scrub" default:"7d" range:"1m * or 0"`                      // time in which each sealed segment is read again, to find damage; 0: never
	Tenants     *Block        `key:"tenants"`                                                   // limits of single tenants, see TenantLimits; nil: none
	Compression Compression   `key:"compression" default:"zstd" check:"one zstd none"`          // of full segments, as columns
	MaxKeys     int           `key:"max_keys" default:"1000000" range:"1 100000000"`            // idempotency keys remembered
	KeyAge      time.Duration `key:"key_age" default:"1h" range:"1s 30d"`                       // how long they are remembered
}

// Rejected configures the dead letter queue.
type Rejected struct {
	KeepSize Size `key:"keep_size" default:"64MiB" range:"1MiB 1TiB or 0"` // bytes kept; beyond, the oldest of the tenant with the most are removed; 0: none
}

// Forward configures the credentials of clients of the Fluent forward protocol.
type Forward struct {
	SharedKeyFile string `key:"shared_key_file"` // a file with the shared key; empty: none is required
	UsersFile     string `key:"users_file"`      // a file of lines USER:PASSWORD, one of them required too; empty: none is required
}

// Kafka configures the sink to a topic of Apache Kafka.
type Kafka struct {
	Brokers      string        `key:"brokers" check:"brokers"`                                                // host:port of some brokers, separated by blanks; empty: no sink
	Topic        string        `key:"topic" default:"logs" check:"topic"`                                     // where lines go
	Key          string        `key:"key"`                                                                    // top-level key of a line whose value becomes the record's key; empty: none
	Compression  string        `key:"compression" default:"none" check:"one none gzip snappy lz4 zstd"`       // of batches
	TLS          string        `key:"tls" default:"off" check:"one off on"`                                   // encryption
	TLSCA        string        `key:"tls_ca"`                                                                 // PEM file of authorities; empty: the system's
	TLSCert      string        `key:"tls_cert"`                                                               // PEM file of a client certificate; empty: none
	TLSKey       string        `key:"tls_key"`                                                                // PEM file of its key
	SASL         string        `key:"sasl" default:"none" check:"one none plain scram-sha-256 scram-sha-512"` // how a user logs in
	User         string        `key:"user"`                                                                   // for sasl
	PasswordFile string        `key:"password_file"`                                                          // a file with the user's password
	PasswordEnv  string        `key:"password_env"`                                                           // an environment variable with the password, instead of the file
	MaxRecord    Size          `key:"max_record" default:"1000000" range:"1KiB 100MiB"`                       // bytes of a record, as the topic's max.message.bytes
	MaxEvents    int           `key:"max_events" default:"1000" range:"1 1000000"`                            // lines in a batch
	MaxBytes     Size          `key:"max_bytes" default:"1MiB" range:"1KiB 1GiB"`                             // bytes in a batch
	MaxAge       time.Duration `key:"max_age" default:"100ms" range:"1ms 1h"`                                 // time for a batch to fill
	WhenFull     string        `key:"when_full" default:"hold" check:"one hold drop_oldest"`                  // Hold or DropOldest
}

// Values of Kafka.WhenFull.
const (
	Hold       = "hold"        // retention waits for the sink, and a full journal refuses lines
	DropOldest = "drop_oldest" // retention may delete what the sink has not delivered
)

// Timeouts bounds requests, connections and the stop of the collector.
type Timeouts struct {
	ReadHeader time.Duration `key:"read_header" default:"10s" range:"100ms 1h"` // for the request line and the headers
	Read       time.Duration `key:"read" default:"1m" range:"100ms 1d"`         // for a whole request, body included
	Write      time.Duration `key:"write" default:"30s" range:"100ms 1d"`       // for an answer; a stream of lines is bounded per write instead
	Query      time.Duration `key:"query" default:"2m" range:"100ms 30d"`       // for a query's search, without the time that its client takes
	QueryCPU   time.Duration `key:"query_cpu" default:"30s" range:"100ms 30d"`  // for a query's matching of lines on all processors together, by the clock, not counting the time to read them or to wait for a turn
	Idle       time.Duration `key:"idle" default:"11m" range:"100ms 1d"`        // for the next request on a kept connection
	Stream     time.Duration `key:"stream" default:"1h" range:"100ms 30d"`      // for the next bytes on a TCP connection other than HTTP
	Linger     time.Duration `key:"linger" default:"250ms" range:"0s 1m"`       // for a last request on a kept connection, when stopping
	Shutdown   time.Duration `key:"shutdown" default:"10s" range:"100ms 1h"`    // for requests in progress, when stopping
}

// Durability is what a 2xx answer promises about its lines.
type Durability string

const (
	Buffered Durability = "buffered" // they survive a crash of the process
	Synced   Durability = "synced"   // they survive a crash of the machine
)

// Compression is the compression of full segments.
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

// String writes s in the largest binary unit that divides it: 64MiB, 1000.
func (s Size) String() string {
	for _, u := range sizeUnits[:4] {
		if s >= u.size && s%u.size == 0 {
			return fmt.Sprintf("%d%s", s/u.size, u.name)
		}
	}
	return fmt.Sprintf("%d", int64(s))
}

// Default returns the default settings.
func Default() (c Config) {
	for _, f := range fields {
		if f.initial == "" {
			continue
		}
		if err := f.set(&c, f.initial); err != nil {
			panic("config: the default of " + f.key + ": " + err.Error())
		}
	}
	return c
}

// Auto derives a setting from others.
const Auto = "auto"

// AddrGRPC resolves ListenGRPC: auto is port 4317 of Listen's host if Listen has port
// 4318, else off. "": off.
func (c *Config) AddrGRPC() string {
	if c.ListenGRPC != Auto {
		return c.ListenGRPC
	}
	if host, port, err := net.SplitHostPort(c.Listen); err == nil && port == "4318" {
		return net.JoinHostPort(host, "4317")
	}
	return ""
}

// Set parses text, by the rules of the file, as the value of a key such as
// "limits.max_body". The error does not name the key: the caller knows the source.
func (c *Config) Set(key, text string) error {
	for _, f := range fields {
		if f.key == key {
			return f.set(c, text)
		}
	}
	return fmt.Errorf("no setting is called %s", key)
}

// Keys returns the keys of all settings in documented order.
func Keys() []string {
	var keys []string
	for _, f := range fields {
		keys = append(keys, f.key)
	}
	return keys
}

// OneOf returns the words that a setting must be one of; nil: it may be something else.
func OneOf(key string) []string {
	for _, f := range fields {
		if f.key == key {
			return f.words
		}
	}
	return nil
}

// Difference returns the key of the first setting in which c and other differ, or "".
func (c *Config) Difference(other *Config) string {
	for _, f := range fields {
		if encode(f.node(c)) != encode(f.node(other)) {
			return f.key
		}
	}
	return ""
}

// Check reports settings that contradict each other, as Errors. Single settings are
// checked when they are set.
func (c *Config) Check() error {
	var list Errors
	add := func(when bool, key, format string, args ...any) {
		if when {
			list = append(list, &Error{Key: key, Message: fmt.Sprintf(format, args...)})
		}
	}
	l, j, tls := c.Limits, c.Journal, c.TLS
	if _, err := c.Normalize.Keys(); err != nil {
		list = append(list, err.(*Error))
	}
	add(l.MaxEvent > l.MaxUnpacked, "limits.max_event",
		"%v is more than limits.max_unpacked (%v): no request could carry such an event", l.MaxEvent, l.MaxUnpacked)
	add(3*l.MaxUnpacked > l.InFlight, "limits.in_flight",
		"%v is less than three times limits.max_unpacked (%v): the largest request allowed could never be accepted", l.InFlight, l.MaxUnpacked)
	add(l.MaxQuery > l.QueryMemory, "limits.max_query", "%v is more than limits.query_memory (%v)", l.MaxQuery, l.QueryMemory)
	add(c.UI.UserHeader != "" && strings.TrimSpace(c.Proxies.Trusted) == "", "ui.user_header", "anybody can send it: set proxies.trusted to the proxies that write it")
	add(c.UI.RoleHeader != "" && c.UI.UserHeader == "", "ui.role_header", "roles are of a person: set ui.user_header too")
	add((tls.Cert == "") != (tls.Key == ""), "tls.cert", "tls.cert and tls.key must be set together")
	add(tls.ClientCA != "" && tls.Cert == "", "tls.client_ca", "client certificates need TLS: set tls.cert and tls.key too")
	add(j.MaxSize > 0 && j.MaxSize < j.SegmentSize, "journal.max_size",
		"%v is less than one segment (journal.segment_size is %v)", j.MaxSize, j.SegmentSize)
	add(j.MaxSize > 0 && j.RetainSize > j.MaxSize, "journal.retain_size",
		"%v is more than journal.max_size (%v): new lines would be refused before old ones are removed", j.RetainSize, j.MaxSize)
	if limits, err := j.TenantLimits(); err != nil {
		list = append(list, err.(Errors)...)
	} else {
		add(len(limits) > 0 && j.Compression == NoCompression, "journal.tenants",
			"limits of tenants need journal.compression: zstd, since only packed segments have blocks of one tenant")
	}
	k := c.Kafka
	add(k.TLS != "on" && k.TLSCA+k.TLSCert+k.TLSKey != "", "kafka.tls", "certificates are used within TLS only: set kafka.tls to on")
	add((k.TLSCert == "") != (k.TLSKey == ""), "kafka.tls_cert", "kafka.tls_cert and kafka.tls_key must be set together")
	switch anySecret, oneSecret := k.PasswordFile+k.PasswordEnv != "", (k.PasswordFile == "") != (k.PasswordEnv == ""); {
	case k.SASL == "none":
		add(k.User != "" || anySecret, "kafka.sasl", "there is a user or a password: set kafka.sasl too")
	case k.User == "" || !oneSecret:
		add(true, "kafka.sasl", "%s takes kafka.user and one of kafka.password_file and kafka.password_env", k.SASL)
	default:
		add(k.SASL == "plain" && k.TLS != "on" && !k.local(), "kafka.sasl", "plain sends the password as it is: set kafka.tls to on, or use scram-sha-512")
	}
	streams := func(key, text string) {
		addrs, _ := ParseAddrs(text, "tcp", "tls", "udp") // it was checked
		for _, a := range addrs {
			add(a.Network == "tls" && tls.Cert == "", key, "%s begins with tls://: set tls.cert and tls.key too", a)
			add(c.Access.Tokens != "" && !loopback(a.Host) && (a.Network != "tls" || tls.Cert != "" && tls.ClientCA == ""), key,
				"%s is open to the network, and its protocol has no place for a token (access.tokens): listen on 127.0.0.1, or use tls:// and tls.client_ca", a)
		}
	}
	streams("listen_tcp", c.ListenTCP)
	streams("listen_syslog", c.ListenSyslog)
	streams("listen_gelf", c.ListenGELF)
	streams("listen_lumberjack", c.ListenLumberjack)
	if c.Forward.SharedKeyFile == "" {
		streams("listen_forward", c.ListenForward)
	}
	add(c.Forward.UsersFile != "" && c.Forward.SharedKeyFile == "", "forward.users_file", "users need a shared key: set forward.shared_key_file too")
	if len(list) == 0 {
		return nil
	}
	return list
}

// local reports whether all brokers are on this machine.
func (k *Kafka) local() bool {
	return !slices.ContainsFunc(strings.Fields(k.Brokers), func(broker string) bool { return !loopback(broker) })
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
	root := &yaml.Node{Kind: yaml.MappingNode}
	sections := map[string]*yaml.Node{"": root}
	add := func(to *yaml.Node, key string, value *yaml.Node) {
		to.Content = append(to.Content, &yaml.Node{Kind: yaml.ScalarNode, Value: key}, value)
	}
	for _, f := range fields {
		section, name, nested := strings.Cut(f.key, ".")
		if !nested {
			section, name = "", f.key
		}
		if sections[section] == nil {
			sections[section] = &yaml.Node{Kind: yaml.MappingNode}
			add(root, section, sections[section])
		}
		add(sections[section], name, f.node(c))
	}
	return encode(root)
}
