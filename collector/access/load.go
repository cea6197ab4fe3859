package access

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/rollway/rollway/collector/config"
	"github.com/rollway/rollway/internal/disk"
)

// minSecret is how many bytes a secret has at least, so that nobody guesses it.
const minSecret = 16

// maxWeight is the greatest weight of a token.
const maxWeight = 1000

// maxFile is far above any list of tokens.
const maxFile = 4 << 20

// Load reads the tokens of the file at path, a YAML list:
//
//   - name: checkout            # for logs and metrics
//     secret: "…"               # at least 16 characters; or
//     secret_sha256: "…"        # its SHA-256 in hexadecimal
//     tenant: shop              # optional, goes into each event; read finds these alone
//     may: [write, read]        # optional, also operate; [write] if left out
//     durability: synced        # optional, buffered or synced
//     bytes_per_second: 10MiB   # optional, of bodies, unpacked
//     events_per_second: 5000   # optional
//     weight: 2                 # optional, shares where others have one
//     origins: ["https://shop.example", "https://*.shop.example"]   # optional
//
// A token with origins is for web pages of them alone and may be public: it has a tenant,
// may write and nothing else, and without rates of its own is held to PageBytes and
// PageEvents.
//
// What is wrong is told with its line, all of it at once, as config.Errors;
// no secret is ever part of it.
func Load(path string) (*Keyring, error) {
	text, err := disk.ReadConfig(path, maxFile+1)
	if err != nil {
		return nil, fmt.Errorf("read tokens: %w", err)
	}
	if len(text) > maxFile {
		return nil, fmt.Errorf("read tokens: %s is larger than %v: not a file of tokens", path, config.Size(maxFile))
	}
	return Parse(path, text)
}

// Parse is Load for text in memory, of a file of that name.
func Parse(name string, text []byte) (*Keyring, error) {
	l := loader{file: name, keyring: newKeyring(), names: make(map[string]int)}
	l.document(text)
	if len(l.errors) > 0 {
		return nil, l.errors
	}
	return l.keyring, nil
}

type loader struct {
	file    string
	keyring *Keyring
	names   map[string]int // to lines
	errors  config.Errors
}

func (l *loader) fail(n *yaml.Node, key, format string, args ...any) {
	l.errors = append(l.errors, &config.Error{File: l.file, Line: n.Line, Column: n.Column, Key: key, Message: fmt.Sprintf(format, args...)})
}

// yamlLine is all that is told of what a YAML parser says: it quotes the text,
// perhaps a secret.
var yamlLine = regexp.MustCompile(`line (\d+)`)

func (l *loader) document(text []byte) {
	var doc yaml.Node
	dec := yaml.NewDecoder(strings.NewReader(string(text)))
	if err := dec.Decode(&doc); err != nil {
		if !errors.Is(err, io.EOF) {
			e := &config.Error{File: l.file, Message: "not valid YAML, which begins at this line or one before"}
			if m := yamlLine.FindStringSubmatch(err.Error()); m != nil {
				e.Line, _ = strconv.Atoi(m[1])
			}
			l.errors = append(l.errors, e)
			return
		}
		l.errors = append(l.errors, &config.Error{File: l.file, Message: "there are no tokens in it: nobody could do anything; leave access.tokens out to let everybody in"})
		return
	}
	var more yaml.Node
	if err := dec.Decode(&more); !errors.Is(err, io.EOF) {
		l.errors = append(l.errors, &config.Error{File: l.file, Line: more.Line, Message: "a second document begins, or the text after the tokens is not valid YAML: a file contains one list"})
		return
	}
	list := doc.Content[0]
	if list.Kind != yaml.SequenceNode || len(list.Content) == 0 {
		l.fail(list, "", "a list of tokens is wanted, each as in \"- name: checkout\" with more keys below it")
		return
	}
	for _, entry := range list.Content {
		if entry.Kind != yaml.MappingNode {
			l.fail(entry, "", "a token is a set of keys and values, as in \"- name: checkout\"")
			continue
		}
		l.entry(entry)
	}
}

// entry reads one token.
func (l *loader) entry(m *yaml.Node) {
	t, before := &Token{Rights: Write}, len(l.errors)
	var sum *[sha256.Size]byte
	seen := make(map[string]bool)
	for i := 0; i+1 < len(m.Content); i += 2 {
		k, v := m.Content[i], m.Content[i+1]
		if seen[k.Value] {
			l.fail(k, k.Value, "given twice for one token")
			continue
		}
		seen[k.Value] = true
		switch k.Value {
		case "secret", "secret_sha256":
			if sum != nil {
				l.fail(k, k.Value, "a token has either secret or secret_sha256")
				continue
			}
			sum = l.secret(k, v)
		default:
			l.setting(t, k, v)
		}
	}
	if t.Name == "" && !seen["name"] {
		l.fail(m, "name", "missing: logs and metrics call the token by it")
	}
	if !seen["secret"] && !seen["secret_sha256"] {
		l.fail(m, "secret", "missing: %d characters at least, as \"openssl rand -hex 16\" makes them", minSecret)
	}
	if len(l.errors) > before {
		return
	}
	if t.OfPages() && !l.public(t, m) {
		return
	}
	t.id, t.extras = l.keyring.digest(*sum), ExtrasOf(t.tenant)
	if other := l.keyring.tokens[t.id]; other != nil {
		l.fail(m, "secret", "tokens %s and %s have the same", other.Name, t.Name)
		return
	}
	l.keyring.tokens[t.id] = t
	l.keyring.list = append(l.keyring.list, t)
	if t.OfPages() {
		l.keyring.pages = append(l.keyring.pages, t)
	}
}

// Rates per second of a token of web pages that names none.
const (
	PageBytes  = 1 << 20
	PageEvents = 1000
)

// public checks and completes a token that may be public.
func (l *loader) public(t *Token, m *yaml.Node) bool {
	if t.Rights != Write {
		l.fail(m, "may", "a token with origins is public: it may write and nothing else")
		return false
	}
	if t.tenant == "" {
		l.fail(m, "tenant", "missing: a token with origins is public, and what comes with it must be some tenant's")
		return false
	}
	if t.allowance.bytes == 0 {
		t.allowance.bytes = PageBytes
	}
	if t.allowance.events == 0 {
		t.allowance.events = PageEvents
	}
	return true
}

// secret returns the SHA-256 of the secret that v is or tells.
func (l *loader) secret(k, v *yaml.Node) *[sha256.Size]byte {
	if v.Kind != yaml.ScalarNode {
		l.fail(v, k.Value, "a string in quotes is wanted")
		return nil
	}
	if k.Value == "secret_sha256" {
		raw, err := hex.DecodeString(v.Value)
		if err != nil || len(raw) != sha256.Size {
			l.fail(v, k.Value, "%d hexadecimal digits are wanted, as sha256sum prints them", 2*sha256.Size)
			return nil
		}
		sum := [sha256.Size]byte(raw)
		return &sum
	}
	if len(v.Value) < minSecret {
		l.fail(v, k.Value, "%d characters are too few, %d are wanted at least, as \"openssl rand -hex 16\" makes them", len(v.Value), minSecret)
		return nil
	}
	sum := sha256.Sum256([]byte(v.Value))
	return &sum
}

// settings are the keys of a token beside its secret.
var settings = []string{"name", "tenant", "may", "durability", "bytes_per_second", "events_per_second", "weight", "origins"}

func (l *loader) setting(t *Token, k, v *yaml.Node) {
	if !slices.Contains(settings, k.Value) {
		l.fail(k, "", "unknown key %.40q; a token has secret or secret_sha256, %s", k.Value, strings.Join(settings, ", "))
		return
	}
	if k.Value == "may" {
		t.Rights = l.rights(v)
		return
	}
	if k.Value == "origins" {
		t.origins = l.origins(v)
		return
	}
	if v.Kind != yaml.ScalarNode || v.Tag == "!!null" {
		l.fail(v, k.Value, "a value is wanted, not a list or a section or nothing")
		return
	}
	switch k.Value {
	case "name", "tenant":
		if !config.Name.MatchString(v.Value) {
			l.fail(v, k.Value, "1 to 64 letters, digits, dots, hyphens and underscores are wanted")
			return
		}
		if k.Value == "tenant" {
			t.tenant = v.Value
			return
		}
		if line, ok := l.names[v.Value]; ok {
			l.fail(v, k.Value, "%s is taken in line %d", v.Value, line)
			return
		}
		l.names[v.Value], t.Name = v.Line, v.Value
	case "durability":
		if v.Value != string(config.Buffered) && v.Value != string(config.Synced) {
			l.fail(v, k.Value, "buffered or synced is wanted")
		}
		t.durability = v.Value
	case "weight":
		n, err := strconv.Atoi(v.Value)
		if err != nil || n < 1 || n > maxWeight {
			l.fail(v, k.Value, "a number from 1 to %d is wanted", maxWeight)
		}
		t.weight = n
	default:
		n, err := config.ParseSize(v.Value)
		if err != nil || n <= 0 {
			l.fail(v, k.Value, "a number above 0 is wanted, as 5000 or 10MiB")
			return
		}
		if k.Value == "bytes_per_second" {
			t.allowance.bytes = float64(n)
		} else {
			t.allowance.events = float64(n)
		}
	}
}

func (l *loader) origins(v *yaml.Node) (list []origin) {
	for _, n := range elements(v) {
		o, is := parseOrigin(n.Value)
		if !is {
			l.fail(n, "origins", `an origin is wanted, such as "https://shop.example" or "https://*.shop.example"`)
			continue
		}
		list = append(list, o)
	}
	if len(list) == 0 && v.Kind == yaml.SequenceNode {
		l.fail(v, "origins", "an empty list: leave it out for a token that is not for web pages")
	}
	return list
}

// elements are those of a list, or a value alone.
func elements(v *yaml.Node) []*yaml.Node {
	if v.Kind == yaml.SequenceNode {
		return v.Content
	}
	return []*yaml.Node{v}
}

func (l *loader) rights(v *yaml.Node) (r Right) {
	for _, n := range elements(v) {
		i := slices.IndexFunc(rights, func(known namedRight) bool { return known.name == n.Value })
		if i < 0 {
			l.fail(n, "may", "write, read or operate is wanted")
			continue
		}
		r |= rights[i].right
	}
	if r == 0 {
		l.fail(v, "may", "write, read or operate is wanted: a token that may do nothing is of no use")
	}
	return r
}
