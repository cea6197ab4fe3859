package remote

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/rollway/rollway/internal/jsonline"
	"github.com/rollway/rollway/internal/levels"
)

// Loki says how lines become entries of Grafana Loki's streams. The zero value is the
// recommended setting. The entry is the line itself, with the line's time or that of the
// first attempt to send it.
type Loki struct {
	// Labels are those of every stream: few, and with few values, for each
	// combination is a stream of its own. Default: service_name, the program's
	// file name.
	Labels map[string]string

	// LevelLabel is the label that tells streams by level: trace, debug, info,
	// warn, error, critical, fatal, or unknown for a line without one. "-"
	// means none. Default "level".
	LevelLabel string
}

var labelName = regexp.MustCompile(`^[a-zA-Z_][a-zA-Z0-9_]*$`)

func (o *Loki) setDefaults() error {
	o.LevelLabel = cmp.Or(o.LevelLabel, "level")
	if o.Labels == nil {
		o.Labels = map[string]string{"service_name": printable(programName(), 255)}
	}
	o.Labels = maps.Clone(o.Labels)
	for name, value := range o.Labels {
		switch {
		case !labelName.MatchString(name) || strings.HasPrefix(name, "__"):
			return fmt.Errorf("Options.Loki.Labels holds %q: a name is letters, digits and _, and does not begin with a digit or __", name)
		case value == "" || !utf8.ValidString(value):
			return fmt.Errorf("Options.Loki.Labels: the value of %q is empty or not UTF-8", name)
		case name == o.LevelLabel:
			return fmt.Errorf("Options.Loki.Labels holds %q, which is Options.Loki.LevelLabel", name)
		}
	}
	if o.LevelLabel != "-" && !labelName.MatchString(o.LevelLabel) {
		return fmt.Errorf("Options.Loki.LevelLabel is %q, which is no name of a label", o.LevelLabel)
	}
	if o.LevelLabel == "-" && len(o.Labels) == 0 {
		return errors.New("Options.Loki has no labels at all: Loki wants one at least")
	}
	return nil
}

// lokiLevels are the values of the label, those that Loki itself knows.
var lokiLevels = []string{"unknown", "trace", "debug", "info", "warn", "error", "critical", "fatal"}

// A lokiFormat is Loki's push protocol with a JSON body.
type lokiFormat struct {
	levels bool
	open   []string // the beginning of a stream, by group
	rec    record
	groups []int // of the lines of one body
}

func newLokiFormat(o Loki) *lokiFormat {
	f := &lokiFormat{levels: o.LevelLabel != "-"}
	for _, level := range lokiLevels {
		var b []byte
		b = append(b, `{"stream":{`...)
		for _, name := range slices.Sorted(maps.Keys(o.Labels)) {
			b = append(jsonline.AppendString(b, name), ':')
			b = append(jsonline.AppendString(b, o.Labels[name]), ',')
		}
		if f.levels {
			b = append(jsonline.AppendString(b, o.LevelLabel), ':')
			b = append(jsonline.AppendString(b, level), ',')
		}
		f.open = append(f.open, string(b[:len(b)-1])+`},"values":[`)
	}
	return f
}

func (f *lokiFormat) group(line []byte) int {
	if !f.levels {
		return 0
	}
	if f.rec.read(line, false); !f.rec.hasLevel {
		return 0
	}
	return 1 + levelIn(lokiBounds, f.rec.level)
}

// lokiBounds are the first levels beyond those of the labels from trace on.
var lokiBounds = []slog.Level{slog.LevelDebug, slog.LevelInfo, slog.LevelWarn, slog.LevelError, levels.Panic, levels.Fatal}

func (f *lokiFormat) appendBody(dst, _ []byte, lines [][]byte, at time.Time, _ func(int) string) []byte {
	f.groups = f.groups[:0]
	var used [8]bool
	for _, line := range lines {
		g := f.group(line)
		f.groups = append(f.groups, g)
		used[g] = true
	}
	dst = append(dst, `{"streams":[`...)
	for g := range used {
		if !used[g] {
			continue
		}
		dst = append(dst, f.open[g]...)
		for i, line := range lines {
			if f.groups[i] != g {
				continue
			}
			t := at
			if f.rec.read(line, false); !f.rec.time.IsZero() {
				t = f.rec.time
			}
			dst = append(dst, '[', '"')
			dst = strconv.AppendInt(dst, t.UnixNano(), 10)
			dst = append(dst, '"', ',')
			dst = append(jsonline.AppendStringBytes(dst, line), ']', ',')
		}
		dst = append(dst[:len(dst)-1], ']', '}', ',')
	}
	return append(dst[:len(dst)-1], ']', '}')
}

// maxLokiText is how many bytes of a refusal are read. By default it has some 200 bytes
// for each of ten entries and ends with their number.
const maxLokiText = 64 << 10

var lokiAdvice = map[int]string{
	statusBlocked:                    "see block_ingestion_until in this Loki's limits_config; the lines are kept",
	http.StatusUnauthorized:          lokiAccess,
	http.StatusForbidden:             lokiAccess,
	http.StatusNotFound:              lokiPath,
	http.StatusMethodNotAllowed:      lokiPath,
	http.StatusBadRequest:            "",
	http.StatusUnprocessableEntity:   "",
	http.StatusRequestEntityTooLarge: "",
}

const (
	lokiAccess = "check Options.Token; a Loki with tenants wants X-Scope-OrgID in Options.Header"
	lokiPath   = "check the path of the URL: Loki takes lines at /loki/api/v1/push"
)

// readAnswer reads Loki's answer. A 400 says that some lines were not stored: how many
// if all are of one stream, and otherwise for one of the streams only. Loki ignores lines
// that it has already. A 260 says that it has stored nothing because its operator blocks
// lines.
func (f *lokiFormat) readAnswer(resp *http.Response, lines int, mixed bool) (v verdict, err error) {
	defer drain(resp.Body)
	code := resp.StatusCode
	switch code {
	case http.StatusOK, http.StatusCreated, http.StatusAccepted, http.StatusNoContent:
		_, err := readConfirmation(resp)
		return v, err
	}
	text, err := io.ReadAll(io.LimitReader(resp.Body, maxLokiText))
	body, whole := string(text), err == nil && len(text) < maxLokiText
	refused := refusal(resp, body[:min(len(body), maxQuote)], lokiAdvice)
	switch {
	case !refusesBody(code), strings.Contains(body, "ate limit exceeded") && code != http.StatusRequestEntityTooLarge:
		return v, refused // with a rate limit, some lines may be stored another time
	case code == http.StatusRequestEntityTooLarge:
		return verdict{whole: refused}, nil
	}
	ignored, of, counted := parseIgnored(body)
	certain := counted || aboutEntry(body)
	switch {
	case certain && mixed:
		return verdict{split: true}, nil
	case counted && whole && of == lines:
		return verdict{refused: uint64(ignored), reason: refused.Error()}, nil
	}
	return verdict{whole: refused, certain: certain}, nil
}

// statusBlocked is what Loki answers while block_ingestion_until says so.
const statusBlocked = 260

var ignoredOf = regexp.MustCompile(`total ignored: ([0-9]{1,9}) out of ([0-9]{1,9})`)

// parseIgnored finds in an answer how many entries of a stream were ignored.
func parseIgnored(body string) (ignored, of int, ok bool) {
	all := ignoredOf.FindAllStringSubmatch(body, 2)
	if len(all) != 1 { // several: nobody knows which lines they speak of
		return 0, 0, false
	}
	ignored, _ = strconv.Atoi(all[0][1])
	of, _ = strconv.Atoi(all[0][2])
	return ignored, of, ignored <= of
}

// aboutEntry reports whether an answer says that an entry cannot be stored for
// what it is, and not that something is set up wrongly. In older versions the
// message on a size begins with a capital.
func aboutEntry(body string) bool {
	for _, s := range []string{
		"timestamp too old", "timestamp too new", "too far behind", "out of order", "ax entry size", "total ignored:",
	} {
		if strings.Contains(body, s) {
			return true
		}
	}
	return false
}
