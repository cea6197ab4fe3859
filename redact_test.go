package rollway

import (
	"bytes"
	"errors"
	"io"
	"log/slog"
	"regexp"
	"strings"
	"testing"
)

type account struct {
	Name     string `json:"name"`
	Password string `json:"password"`
	Cards    []card `json:"cards"`
}

type card struct {
	Number string `json:"number"`
	CVC    int    `json:"cvc"`
}

func TestRedaction(t *testing.T) {
	var b, text bytes.Buffer
	l := mustNew(t, Options{
		Outputs: []Output{{Writer: &b}, {Writer: &text, Encoder: Logfmt{}}},
		Redact: &Redaction{
			Keys:     []string{"PassWord", "cvc", "user.ssn", "http.headers.*", "api_*"},
			Patterns: []*regexp.Regexp{regexp.MustCompile(`\b\d{4}-\d{4}-\d{4}-\d{4}\b`)},
		},
		Caller: LevelOff,
	})
	ctx := ContextWith(t.Context(), slog.String("api_token", "SECRET"))
	acc := &account{"ann", "SECRET", []card{{"1234-5678-9012-3456", 999}}}
	for _, c := range []struct {
		log  func()
		want string
	}{
		{func() { l.Info(ctx, "m", slog.String("password", "SECRET"), slog.Int("n", 1)) }, `{"level":"INFO","msg":"m","attrs":{"api_token":"[REDACTED]","password":"[REDACTED]","n":1}}`},
		{func() { l.Info(t.Context(), "card 1234-5678-9012-3456 refused", slog.Any("account", acc)) },
			`{"level":"INFO","msg":"card [REDACTED] refused","attrs":{"account":{"cards":[{"cvc":"[REDACTED]","number":"[REDACTED]"}],"name":"ann","password":"[REDACTED]"}}}`},
		{func() {
			l.Info(t.Context(), "m", slog.Group("user", slog.String("ssn", "SECRET"), slog.String("id", "7")), slog.String("ssn", "not under user"))
		},
			`{"level":"INFO","msg":"m","attrs":{"user":{"ssn":"[REDACTED]","id":"7"},"ssn":"not under user"}}`},
		{func() {
			l.WithGroup("http").With(slog.Any("headers", map[string]any{"cookie": "SECRET"})).Info(t.Context(), "m", slog.Any("headers", map[string]string{"auth": "SECRET"}))
		},
			`{"level":"INFO","msg":"m","attrs":{"http":{"headers":{"auth":"[REDACTED]"}}}}`},
		{func() {
			l.With(slog.Any("error", errors.New("card 1234-5678-9012-3456"))).Error(t.Context(), "m", slog.Any("e", errors.New("fine")))
		},
			`{"level":"ERROR","msg":"m","error":"card [REDACTED]","attrs":{"e":"fine"}}`},
		{func() { slog.New(l.Handler()).With("password", "SECRET").WithGroup("user").Info("m", "ssn", "SECRET") },
			`{"level":"INFO","msg":"m","attrs":{"password":"[REDACTED]","user":{"ssn":"[REDACTED]"}}}`},
		{func() { l.Info(t.Context(), "m", slog.Any("v", userValue{1}), slog.Any("u", &user{3, tags{"a"}})) },
			`{"level":"INFO","msg":"m","attrs":{"v":{"id":1,"password":"[REDACTED]"},"u":{"id":3,"tags":["a"]}}}`},
	} {
		c.log()
		if got := oneLine(t, &b); got != c.want {
			t.Errorf("\n got %s\nwant %s", got, c.want)
		}
	}
	if strings.Contains(text.String(), "SECRET") || strings.Contains(text.String(), "3456") {
		t.Errorf("logfmt shows a secret:\n%s", text.String())
	}
	if acc.Password != "SECRET" {
		t.Error("the value itself was changed")
	}
	if _, err := New(Options{Outputs: []Output{{Writer: io.Discard}}, Redact: &Redaction{Keys: []string{"a.[b"}}}); err == nil || !strings.Contains(err.Error(), `"a.[b"`) {
		t.Errorf("a bad pattern: %v", err)
	}
}
