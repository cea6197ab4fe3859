package config

import (
	"errors"
	"fmt"
	"math"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/rollway/rollway/collector/forwarded"
)

// A field is one setting: its key in the file, where it lives in a Config, and
// the range it must lie in. Ranges are in the setting's own unit (bytes,
// nanoseconds, a count); zeroOK allows 0, "no limit", below min.
type field struct {
	key    string
	at     func(*Config) any // *string, *Size, *int, *time.Duration, *Durability, *Compression or **Block
	min    int64
	max    int64
	zeroOK bool
	text   func(string) error // check of a string
}

// fields in the order in which they are documented and printed.
var fields = []field{
	{key: "listen", at: func(c *Config) any { return &c.Listen }, text: checkAddr},
	{key: "listen_tcp", at: func(c *Config) any { return &c.ListenTCP }, text: checkAddrOrEmpty},
	{key: "listen_grpc", at: func(c *Config) any { return &c.ListenGRPC }, text: checkAddrOrAuto},
	{key: "debug_listen", at: func(c *Config) any { return &c.DebugListen }, text: checkAddrOrEmpty},
	{key: "listen_syslog", at: func(c *Config) any { return &c.ListenSyslog }, text: checkAddrs("udp", "tcp", "tls")},
	{key: "listen_forward", at: func(c *Config) any { return &c.ListenForward }, text: checkAddrs("tcp", "tls")},
	{key: "data", at: func(c *Config) any { return &c.Data }, text: checkNotEmpty},
	{key: "hosts", at: func(c *Config) any { return &c.Hosts }, text: anything},

	{key: "access.tokens", at: func(c *Config) any { return &c.Access.Tokens }, text: anything},

	{key: "tls.cert", at: func(c *Config) any { return &c.TLS.Cert }, text: anything},
	{key: "tls.key", at: func(c *Config) any { return &c.TLS.Key }, text: anything},
	{key: "tls.client_ca", at: func(c *Config) any { return &c.TLS.ClientCA }, text: anything},

	{key: "proxies.trusted", at: func(c *Config) any { return &c.Proxies.Trusted }, text: checkProxies},
	{key: "proxies.header", at: func(c *Config) any { return &c.Proxies.Header }, text: oneOf(forwarded.XForwardedFor, forwarded.Forwarded)},

	{key: "enrich", at: func(c *Config) any { return &c.Enrich }},
	{key: "rules", at: func(c *Config) any { return &c.Rules }},

	{key: "limits.max_body", at: func(c *Config) any { return &c.Limits.MaxBody }, min: int64(KiB), max: int64(4 * GiB)},
	{key: "limits.max_unpacked", at: func(c *Config) any { return &c.Limits.MaxUnpacked }, min: int64(KiB), max: int64(4 * GiB)},
	{key: "limits.max_event", at: func(c *Config) any { return &c.Limits.MaxEvent }, min: 256, max: int64(64 * MiB)},
	{key: "limits.max_depth", at: func(c *Config) any { return &c.Limits.MaxDepth }, min: 1, max: 1000},
	{key: "limits.max_fields", at: func(c *Config) any { return &c.Limits.MaxFields }, min: 1, max: 1_000_000},
	{key: "limits.max_key", at: func(c *Config) any { return &c.Limits.MaxKey }, min: 16, max: int64(MiB)},
	{key: "limits.max_value", at: func(c *Config) any { return &c.Limits.MaxValue }, min: 64, max: int64(64 * MiB), zeroOK: true},
	{key: "limits.max_events", at: func(c *Config) any { return &c.Limits.MaxEvents }, min: 1, max: 10_000_000},
	{key: "limits.max_future", at: func(c *Config) any { return &c.Limits.MaxFuture }, min: int64(time.Second), max: math.MaxInt64, zeroOK: true},
	{key: "limits.max_past", at: func(c *Config) any { return &c.Limits.MaxPast }, min: int64(time.Second), max: math.MaxInt64, zeroOK: true},
	{key: "limits.in_flight", at: func(c *Config) any { return &c.Limits.InFlight }, min: int64(MiB), max: int64(TiB)},
	{key: "limits.max_connections", at: func(c *Config) any { return &c.Limits.MaxConns }, min: 1, max: 10_000_000, zeroOK: true},
	{key: "limits.max_streams", at: func(c *Config) any { return &c.Limits.MaxStreams }, min: 1, max: 1_000_000},
	{key: "limits.udp_buffer", at: func(c *Config) any { return &c.Limits.UDPBuffer }, min: int64(4 * KiB), max: int64(GiB)},

	{key: "journal.segment_size", at: func(c *Config) any { return &c.Journal.SegmentSize }, min: int64(MiB), max: int64(4 * GiB)},
	{key: "journal.durability", at: func(c *Config) any { return &c.Journal.Durability }},
	{key: "journal.max_size", at: func(c *Config) any { return &c.Journal.MaxSize }, min: int64(MiB), max: math.MaxInt64, zeroOK: true},
	{key: "journal.retain_size", at: func(c *Config) any { return &c.Journal.RetainSize }, min: int64(MiB), max: math.MaxInt64, zeroOK: true},
	{key: "journal.retain_age", at: func(c *Config) any { return &c.Journal.RetainAge }, min: int64(time.Minute), max: math.MaxInt64, zeroOK: true},
	{key: "journal.compression", at: func(c *Config) any { return &c.Journal.Compression }},
	{key: "journal.max_keys", at: func(c *Config) any { return &c.Journal.MaxKeys }, min: 1, max: 100_000_000},
	{key: "journal.key_age", at: func(c *Config) any { return &c.Journal.KeyAge }, min: int64(time.Second), max: int64(30 * 24 * time.Hour)},

	{key: "rejected.keep_size", at: func(c *Config) any { return &c.Rejected.KeepSize }, min: int64(MiB), max: int64(TiB), zeroOK: true},

	{key: "forward.shared_key_file", at: func(c *Config) any { return &c.Forward.SharedKeyFile }, text: anything},
	{key: "forward.users_file", at: func(c *Config) any { return &c.Forward.UsersFile }, text: anything},

	{key: "kafka.brokers", at: func(c *Config) any { return &c.Kafka.Brokers }, text: checkBrokers},
	{key: "kafka.topic", at: func(c *Config) any { return &c.Kafka.Topic }, text: checkTopic},
	{key: "kafka.key", at: func(c *Config) any { return &c.Kafka.Key }, text: anything},
	{key: "kafka.compression", at: func(c *Config) any { return &c.Kafka.Compression }, text: oneOf("none", "gzip", "snappy", "lz4", "zstd")},
	{key: "kafka.tls", at: func(c *Config) any { return &c.Kafka.TLS }, text: oneOf("off", "on")},
	{key: "kafka.tls_ca", at: func(c *Config) any { return &c.Kafka.TLSCA }, text: anything},
	{key: "kafka.tls_cert", at: func(c *Config) any { return &c.Kafka.TLSCert }, text: anything},
	{key: "kafka.tls_key", at: func(c *Config) any { return &c.Kafka.TLSKey }, text: anything},
	{key: "kafka.sasl", at: func(c *Config) any { return &c.Kafka.SASL }, text: oneOf("none", "plain", "scram-sha-256", "scram-sha-512")},
	{key: "kafka.user", at: func(c *Config) any { return &c.Kafka.User }, text: anything},
	{key: "kafka.password_file", at: func(c *Config) any { return &c.Kafka.PasswordFile }, text: anything},
	{key: "kafka.password_env", at: func(c *Config) any { return &c.Kafka.PasswordEnv }, text: anything},
	{key: "kafka.max_record", at: func(c *Config) any { return &c.Kafka.MaxRecord }, min: int64(KiB), max: int64(100 * MiB)},
	{key: "kafka.max_events", at: func(c *Config) any { return &c.Kafka.MaxEvents }, min: 1, max: 1_000_000},
	{key: "kafka.max_bytes", at: func(c *Config) any { return &c.Kafka.MaxBytes }, min: int64(KiB), max: int64(GiB)},
	{key: "kafka.max_age", at: func(c *Config) any { return &c.Kafka.MaxAge }, min: int64(time.Millisecond), max: int64(time.Hour)},
	{key: "kafka.when_full", at: func(c *Config) any { return &c.Kafka.WhenFull }, text: oneOf(Hold, DropOldest)},

	{key: "timeouts.read_header", at: func(c *Config) any { return &c.Timeouts.ReadHeader }, min: int64(100 * time.Millisecond), max: int64(time.Hour)},
	{key: "timeouts.read", at: func(c *Config) any { return &c.Timeouts.Read }, min: int64(100 * time.Millisecond), max: int64(24 * time.Hour)},
	{key: "timeouts.write", at: func(c *Config) any { return &c.Timeouts.Write }, min: int64(100 * time.Millisecond), max: int64(24 * time.Hour)},
	{key: "timeouts.query", at: func(c *Config) any { return &c.Timeouts.Query }, min: int64(100 * time.Millisecond), max: int64(30 * 24 * time.Hour)},
	{key: "timeouts.idle", at: func(c *Config) any { return &c.Timeouts.Idle }, min: int64(100 * time.Millisecond), max: int64(24 * time.Hour)},
	{key: "timeouts.stream", at: func(c *Config) any { return &c.Timeouts.Stream }, min: int64(100 * time.Millisecond), max: int64(30 * 24 * time.Hour)},
	{key: "timeouts.linger", at: func(c *Config) any { return &c.Timeouts.Linger }, max: int64(time.Minute)},
	{key: "timeouts.shutdown", at: func(c *Config) any { return &c.Timeouts.Shutdown }, min: int64(100 * time.Millisecond), max: int64(time.Hour)},
}

// anything is the check of a string that may be any.
func anything(string) error { return nil }

// wants says what a value of the field looks like, for errors.
func (f field) wants() string {
	switch f.at(new(Config)).(type) {
	case *Size:
		return "a size such as 64MiB"
	case *time.Duration:
		return "a duration such as 30s or 7d"
	case *int:
		return "a whole number"
	case *Durability:
		return "buffered or synced"
	case *Compression:
		return "zstd or none"
	case **Block:
		return "a block of YAML"
	default:
		return "a string in quotes"
	}
}

// set gives the field of c the value of text.
func (f field) set(c *Config, text string) error {
	switch p := f.at(c).(type) {
	case *string:
		if err := f.text(text); err != nil {
			return err
		}
		*p = text
	case *Size:
		n, err := ParseSize(text)
		if err != nil {
			return err
		}
		if err := f.inRange(int64(n)); err != nil {
			return err
		}
		*p = n
	case *int:
		n, err := strconv.Atoi(text)
		if err != nil {
			return fmt.Errorf("%q is not a whole number", text)
		}
		if err := f.inRange(int64(n)); err != nil {
			return err
		}
		*p = n
	case *time.Duration:
		d, err := ParseDuration(text)
		if err != nil {
			return err
		}
		if err := f.inRange(int64(d)); err != nil {
			return err
		}
		*p = d
	case *Durability:
		switch d := Durability(text); d {
		case Buffered, Synced:
			*p = d
		default:
			return fmt.Errorf("%q is neither buffered nor synced", text)
		}
	case *Compression:
		switch v := Compression(text); v {
		case Zstd, NoCompression:
			*p = v
		default:
			return fmt.Errorf("%q is neither zstd nor none", text)
		}
	case **Block:
		block, err := parseBlock(text)
		if err != nil {
			return err
		}
		*p = block
	}
	return nil
}

func (f field) inRange(n int64) error {
	if n == 0 && f.zeroOK || n >= f.min && n <= f.max {
		return nil
	}
	bound, value := "at least "+f.print(f.min), f.min
	if n > f.max {
		bound, value = "at most "+f.print(f.max), f.max
	}
	or := ""
	if f.zeroOK && value == f.min {
		or = ", or 0 for no limit"
	}
	return fmt.Errorf("%s is out of range: it must be %s%s", f.print(n), bound, or)
}

// print writes n in the unit of the field.
func (f field) print(n int64) string {
	switch f.at(new(Config)).(type) {
	case *Size:
		return Size(n).String()
	case *time.Duration:
		return formatDuration(time.Duration(n))
	default:
		return strconv.FormatInt(n, 10)
	}
}

// yaml writes the field's value in c as a YAML scalar.
func (f field) yaml(c *Config) string {
	switch p := f.at(c).(type) {
	case *string:
		return strconv.Quote(*p)
	case *Size:
		return p.String()
	case *int:
		return strconv.Itoa(*p)
	case *time.Duration:
		return formatDuration(*p)
	case *Durability:
		return string(*p)
	case *Compression:
		return string(*p)
	case **Block:
		return (*p).yaml(f.key)
	}
	panic("config: a field of unknown type: " + f.key)
}

var sizeUnits = []struct {
	name string
	size Size
}{
	{"KiB", KiB}, {"MiB", MiB}, {"GiB", GiB}, {"TiB", TiB},
	{"KB", 1e3}, {"MB", 1e6}, {"GB", 1e9}, {"TB", 1e12},
	{"B", 1},
}

// ParseSize reads a number of bytes with or without a unit: 1000, 512B, 64KiB,
// 64MiB, 2GiB, 1TiB (powers of 1024), 10KB, 10MB, 2GB, 1TB (powers of 1000).
// Case does not matter; a blank may stand before the unit.
func ParseSize(text string) (Size, error) {
	number, unit := strings.TrimSpace(text), Size(1)
	for _, u := range sizeUnits {
		if n := len(number) - len(u.name); n > 0 && strings.EqualFold(number[n:], u.name) {
			number, unit = strings.TrimSpace(number[:n]), u.size
			break
		}
	}
	n, err := strconv.ParseInt(number, 10, 64)
	switch {
	case errors.Is(err, strconv.ErrRange), err == nil && n > math.MaxInt64/int64(unit):
		return 0, fmt.Errorf("%q is more than can be counted", text)
	case err != nil || n < 0:
		return 0, fmt.Errorf("%q is not a size: write a whole number of bytes or a unit, as in 64KiB, 64MiB, 2GiB", text)
	}
	return Size(n) * unit, nil
}

// ParseDuration reads what time.ParseDuration reads, and whole days (7d).
func ParseDuration(text string) (time.Duration, error) {
	const day = 24 * time.Hour
	if days, ok := strings.CutSuffix(text, "d"); ok {
		if n, err := strconv.ParseInt(days, 10, 64); err == nil && n >= 0 && n <= math.MaxInt64/int64(day) {
			return time.Duration(n) * day, nil
		}
	}
	if text == "0" {
		return 0, nil
	}
	d, err := time.ParseDuration(text)
	if err != nil || d < 0 {
		return 0, fmt.Errorf("%q is not a duration: write a number and a unit, as in 500ms, 30s, 10m, 12h, 7d", text)
	}
	return d, nil
}

// formatDuration is the inverse of ParseDuration, without units that are zero.
func formatDuration(d time.Duration) string {
	const day = 24 * time.Hour
	if d >= day && d%day == 0 {
		return strconv.FormatInt(int64(d/day), 10) + "d"
	}
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = s[:len(s)-2]
	}
	if strings.HasSuffix(s, "h0m") {
		s = s[:len(s)-2]
	}
	return s
}

// checkBrokers admits addresses as checkAddr does, separated by blanks.
func checkBrokers(s string) error {
	for _, addr := range strings.Fields(s) {
		if err := checkAddr(addr); err != nil {
			return err
		}
	}
	return nil
}

// checkProxies admits networks and addresses, separated by blanks.
func checkProxies(s string) error {
	_, err := forwarded.New(s, forwarded.XForwardedFor)
	return err
}

// checkTopic admits what Kafka admits.
func checkTopic(s string) error {
	for _, c := range []byte(s) {
		if !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.IndexByte("._-", c) >= 0) {
			return fmt.Errorf("%q is no name of a topic: use letters, digits, and . _ -", s)
		}
	}
	if s == "" || len(s) > 249 || s == "." || s == ".." {
		return fmt.Errorf("%.300q is no name of a topic: use 1 to 249 letters, digits, and . _ -", s)
	}
	return nil
}

// oneOf admits the values given.
func oneOf(values ...string) func(string) error {
	return func(s string) error {
		if !slices.Contains(values, s) {
			return fmt.Errorf("%q is none of %s", s, strings.Join(values, ", "))
		}
		return nil
	}
}

func checkNotEmpty(s string) error {
	if strings.TrimSpace(s) == "" {
		return errors.New("it must not be empty")
	}
	return nil
}

func checkAddrOrAuto(s string) error {
	if s == Auto {
		return nil
	}
	return checkAddrOrEmpty(s)
}

func checkAddrOrEmpty(s string) error {
	if s == "" {
		return nil
	}
	return checkAddr(s)
}

// checkAddr admits host:port with a numeric port; an empty host is every
// interface.
func checkAddr(s string) error {
	_, port, err := net.SplitHostPort(s)
	if err != nil {
		return fmt.Errorf("%q is not an address: write host:port, as in 127.0.0.1:4318 or [::1]:4318", s)
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil {
		return fmt.Errorf("%q has no usable port: write a number from 0 (any free port) to 65535", s)
	} else if port != strconv.FormatUint(n, 10) {
		return fmt.Errorf("%q has no usable port: %q is not written as a plain number", s, port)
	}
	return nil
}
