package rollway

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestMaxLine(t *testing.T) {
	const limit = 512
	huge := strings.Repeat("é\n\x00x", 5000)
	many := make([]slog.Attr, 500)
	for i := range many {
		many[i] = slog.String(itoa(i), "some value")
	}
	for name, log := range map[string]func(l *Logger){
		"message": func(l *Logger) { l.Info(context.Background(), huge, slog.Int("n", 7)) },
		"value":   func(l *Logger) { l.Info(context.Background(), "short", slog.String("v", huge), slog.Int("n", 7)) },
		"key":     func(l *Logger) { l.Info(context.Background(), "short", slog.String(huge, "v")) },
		"error":   func(l *Logger) { l.Info(context.Background(), "short", slog.Any("error", errors.New(huge))) },
		"any":     func(l *Logger) { l.Info(context.Background(), "short", slog.Any("a", map[string]string{"k": huge})) },
		"group":   func(l *Logger) { l.Info(context.Background(), "short", slog.Group("g", slog.String("v", huge))) },
		"wrapped": func(l *Logger) {
			l.Info(context.Background(), "short", slog.Any("e", fmt.Errorf("outer: %w", errors.New(huge))))
		},
		"With error": func(l *Logger) { l.With(slog.Any("error", errors.New(huge))).Info(context.Background(), "short") },
		"stack":      func(l *Logger) { l.Info(context.Background(), "short", slog.String("stack", huge)) },
		"raw": func(l *Logger) {
			l.Info(context.Background(), "short", slog.Any("r", json.RawMessage(`["`+strings.Repeat("x", 3000)+`"]`)))
		},
		"name":       func(l *Logger) { l.Named(huge).WithGroup(huge).Info(context.Background(), "short", slog.Int("n", 1)) },
		"many":       func(l *Logger) { l.Info(context.Background(), "short", many...) },
		"With":       func(l *Logger) { l.With(slog.String("v", huge)).Info(context.Background(), "short", slog.Int("n", 7)) },
		"With slot":  func(l *Logger) { l.With(slog.String("service", huge)).Info(context.Background(), "short") },
		"With group": func(l *Logger) { l.WithGroup("g").With(many...).Info(context.Background(), "short", slog.Int("n", 7)) },
		"context":    func(l *Logger) { l.Info(ContextWith(context.Background(), slog.String("v", huge)), "short") },
	} {
		for fname, enc := range map[string]Encoder{"json": JSON{}, "layout": JSON{Layout: "msg service:s attrs:"}, "logfmt": Logfmt{}, "console": Console{}, "top": JSON{Layout: "msg attrs:"},
			"logfmt, detail": Logfmt{Errors: ErrorDetail}, "console, detail": Console{Errors: ErrorDetail, Layout: "attrs level msg"}, "custom": Custom{new(shout)}} {
			var b bytes.Buffer
			l := mustNew(t, Options{Outputs: []Output{{Writer: &b, Encoder: enc}}, MaxLine: limit, Caller: LevelOff})
			log(l)
			got := b.String()
			if len(got) > limit || !strings.HasSuffix(got, "\n") || fname != "custom" && strings.Count(strings.ReplaceAll(got, "\n    ", ""), "\n") != 1 || !utf8.ValidString(got) {
				t.Errorf("%s, %s: %d bytes: %q", fname, name, len(got), got)
			}
			if !strings.Contains(got, "cut_from_bytes") && fname != "custom" {
				t.Errorf("%s, %s: it does not say that it was cut: %q", fname, name, got)
			}
			if strings.HasPrefix(got, "{") && !json.Valid(b.Bytes()) {
				t.Errorf("%s, %s: not valid JSON: %s", fname, name, got)
			}
			if name != "message" && !strings.Contains(strings.ToLower(got), "short") {
				t.Errorf("%s, %s: a short message was lost: %s", fname, name, got)
			}
		}
	}
}

func TestMaxLineSaysTheLength(t *testing.T) {
	var b, whole bytes.Buffer
	cut := mustNew(t, Options{Outputs: []Output{{Writer: &b}}, MaxLine: 600})
	all := mustNew(t, Options{Outputs: []Output{{Writer: &whole}}})
	rng := rand.New(rand.NewPCG(1, 1))
	for range 300 {
		value := strings.Repeat("a\"", rng.IntN(600))
		handleAt(cut, aTime, "m", slog.String("v", value))
		handleAt(all, aTime, "m", slog.String("v", value))
		var got struct {
			Attrs struct {
				Cut int `json:"cut_from_bytes"`
			}
		}
		if err := json.Unmarshal(b.Bytes(), &got); err != nil {
			t.Fatal(err)
		}
		switch {
		case whole.Len() <= 600 && b.String() != whole.String():
			t.Fatalf("a line of %d bytes was changed: %s", whole.Len(), b.String())
		case whole.Len() > 600 && got.Attrs.Cut != whole.Len():
			t.Fatalf("cut_from_bytes is %d, want %d", got.Attrs.Cut, whole.Len())
		}
		b.Reset()
		whole.Reset()
	}
}

// TestCutKeepsWhatFits: a value that has no room costs no other attribute, and is
// named; a long text gets all the room that is left, and ends on a rune.
func TestCutKeepsWhatFits(t *testing.T) {
	ints := make([]int64, 300)
	for i := range ints {
		ints[i] = 1<<60 + int64(i)
	}
	for _, enc := range []Encoder{JSON{}, JSON{Layout: "level msg attrs:"}, Logfmt{}, Console{TimeFormat: "-"}, Console{Errors: ErrorDetail}, JSON{Errors: ErrorDetail}} {
		for _, maxLine := range []int{1024, 40_000} {
			long := strings.Repeat("é\n\"x", maxLine)
			for name, c := range map[string]struct {
				log  func(l *Logger)
				full bool // the line is as long as it may be
				has  []string
			}{
				"a value": {func(l *Logger) {
					l.With(slog.Int("before", 1)).Info(t.Context(), "short", slog.Int("a", 2), slog.Any("ints", slices.Repeat(ints, 1+maxLine/5000)), slog.String("b", "3"), slog.Any("error", io.EOF))
				}, false, []string{"short", "before", "a", "b", "EOF", "left_out", "ints"}},
				"a text": {func(l *Logger) {
					l.With(slog.Int("before", 1)).Info(t.Context(), "short", slog.String("text", long), slog.Int("after", 2))
				}, true, []string{"short", "before", "after", "text", "é", "…"}},
				"texts": {func(l *Logger) {
					l.Info(t.Context(), "short", slog.String("text", long), slog.Int("after", 2), slog.Any("error", errors.New(long)), slog.String("third", long))
				}, true, []string{"short", "text", "after", "error", "third", "…"}},
				"the message": {func(l *Logger) { l.Info(t.Context(), long, slog.Int("after", 2)) }, true, []string{"é", "…", "after"}},
				"both":        {func(l *Logger) { l.Info(t.Context(), long, slog.String("text", long), slog.Int("after", 2)) }, true, []string{"é", "…", "after", "text"}},
				"a text in a group": {func(l *Logger) {
					l.WithGroup("g").With(slog.Int("before", 1)).Info(t.Context(), "short", slog.Group("h", slog.String("text", long), slog.Int("in", 3)), slog.Int("after", 2))
				}, true, []string{"short", "before", "after", "text", "in", "é", "…"}},
				"a value in a group": {func(l *Logger) {
					l.WithGroup("g").Info(t.Context(), "short", slog.Group("h", slog.Any("ints", slices.Repeat(ints, 1+maxLine/5000)), slog.Int("in", 3)), slog.Int("after", 2))
				}, false, []string{"short", "after", "g.h.ints", "left_out", "in"}},
				"a text that is not UTF-8": {func(l *Logger) {
					l.Info(t.Context(), "short", slog.String("text", "begin"+strings.Repeat("\x80", maxLine)), slog.Int("after", 2))
				}, true, []string{"short", "begin\uFFFD", "…", "after"}},
				"of With": {func(l *Logger) {
					l.With(slog.String("text", long), slog.Any("ints", slices.Repeat(ints, 1+maxLine/5000)), slog.String("service", long)).Info(t.Context(), "short", slog.Int("after", 2))
				}, true, []string{"short", "after", "text", "é", "…", "ints"}},
				"of a context": {func(l *Logger) {
					l.Info(ContextWith(t.Context(), slog.String("text", long), slog.Int("in", 1)), "short", slog.Int("after", 2))
				}, true, []string{"short", "after", "text", "é", "…", "in"}},
			} {
				var b bytes.Buffer
				log := mustNew(t, Options{Outputs: []Output{{Writer: &b, Encoder: enc}}, MaxLine: maxLine, Caller: LevelOff})
				c.log(log)
				got := b.String()
				if len(got) > maxLine || c.full && len(got) < maxLine-64 || !utf8.ValidString(got) || !strings.HasSuffix(got, "\n") {
					t.Errorf("%#v, %s: %d bytes of %d: %.200s", enc, name, len(got), maxLine, got)
				}
				for _, part := range append(c.has, "cut_from_bytes") {
					if !strings.Contains(got, part) {
						t.Errorf("%#v, %s, %d: no %s in %.500s", enc, name, maxLine, part, got)
					}
				}
				if _, ok := enc.(JSON); ok {
					checkKeys(t, b.Bytes())
				} else {
					checkText(t, name, enc, got)
				}
			}
		}
	}
}

// TestCutNamesHavePaths: what finds no room is named with its groups.
func TestCutNamesHavePaths(t *testing.T) {
	for _, enc := range []Encoder{JSON{}, Logfmt{}} {
		var b bytes.Buffer
		l := mustNew(t, Options{Outputs: []Output{{Writer: &b, Encoder: enc}}, MaxLine: 512, Caller: LevelOff})
		var texts []any
		for i := range 20 {
			texts = append(texts, slog.String("t"+itoa(i), strings.Repeat("x", 200)))
		}
		l.WithGroup("a").Info(t.Context(), "m", slog.Group("b", texts...))
		if got := b.String(); !strings.Contains(got, `"a.b.t19`) && !strings.Contains(got, `"a.b.t19\"`) || len(got) > 512 {
			t.Errorf("%T: %s", enc, got)
		}
	}
}

// TestCutNamesAreBounded: naming what is left out takes no more room than what
// could have stayed.
func TestCutNamesAreBounded(t *testing.T) {
	for _, enc := range []Encoder{JSON{}, Logfmt{}, Console{}} {
		var b bytes.Buffer
		l := mustNew(t, Options{Outputs: []Output{{Writer: &b, Encoder: enc}}, MaxLine: 2048, Caller: LevelOff})
		var attrs []slog.Attr
		for i := range 500 {
			attrs = append(attrs, slog.Any(strings.Repeat("k", i)+itoa(i), slices.Repeat([]int64{1 << 60}, 200)), slog.Int("n"+itoa(i), i))
		}
		l.Info(t.Context(), "m", attrs...)
		got := b.String()
		if len(got) > 2048 || len(got) < 1600 || !strings.Contains(got, "n50") || !strings.Contains(got, "…") {
			t.Errorf("%T: %d bytes: %s", enc, len(got), got)
		}
	}
}
