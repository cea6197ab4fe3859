package access

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rollway/rollway/internal/testkit"
)

const (
	one = "0123456789abcdef"
	two = "fedcba9876543210"
)

func TestLoad(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tokens.yaml")
	text := fmt.Sprintf(`
- name: checkout
  secret: "%s"
  tenant: shop
  may: [write, read]
  durability: synced
  bytes_per_second: 10MiB
  events_per_second: 5000
  weight: 3
- name: other
  secret_sha256: "%x"
`, one, sha256.Sum256([]byte(two)))
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	k, err := Load(path)
	if err != nil {
		t.Fatal(err)
	}
	a, b := k.Find(one), k.Find(two)
	if a == nil || b == nil || len(k.Tokens()) != 2 {
		t.Fatal("a token is not found")
	}
	if a.Name != "checkout" || a.Tenant() != "shop" || !a.May(Read) || !a.May(Write) || a.Durability() != "synced" || a.Extras() == nil || a.Weight() != 3 {
		t.Errorf("the first is %+v", a)
	}
	if b.Name != "other" || b.May(Read) || !b.May(Write) || b.Durability() != "" || b.Weight() != 1 || len(b.Extras().AppendTo(nil)) > 0 {
		t.Errorf("the second is %+v", b)
	}
	for _, secret := range []string{"", "x", one + "0", strings.ToUpper(one), one[:15]} {
		if k.Find(secret) != nil {
			t.Errorf("%q is found", secret)
		}
	}
	if (*Keyring)(nil).Find(one) != nil || (*Token)(nil).May(Write) {
		t.Error("nothing may do something")
	}
}

func TestWhatIsWrongIsTold(t *testing.T) {
	for _, tc := range []struct{ text, want string }{
		{"", "there are no tokens"},
		{"[]", "a list of tokens is wanted"},
		{"name: x", "a list of tokens is wanted"},
		{"- x", "a set of keys and values"},
		{"- name: a\n  secret: \"" + one + "\"\n  tenat: x", `f:3:3: unknown key "tenat"`},
		{"- secret: \"" + one + "\"", "name: missing"},
		{"- name: a", "secret: missing"},
		{"- name: a\n  secret: short", "5 characters are too few"},
		{"- name: a\n  secret_sha256: abc", "64 hexadecimal digits"},
		{"- name: a\n  secret: \"" + one + "\"\n  secret_sha256: abc", "either secret or secret_sha256"},
		{"- name: a b\n  secret: \"" + one + "\"", "letters, digits"},
		{"- name: a\n  name: b\n  secret: \"" + one + "\"", "given twice"},
		{"- name: a\n  secret: \"" + one + "\"\n---\n- name: b\n  secret: \"" + two + "\"", "f:3: a second document"},
		{"- name: a\n  secret: \"" + one + "\"\n---\n]", "f: a second document"},
		{"- {name: a, secret: " + one + ", tenant: x, origins: [\"shop.example\"]}", "origins: an origin is wanted"},
		{"- {name: a, secret: " + one + ", tenant: x, origins: [\"https://*shop.example\"]}", "origins: an origin is wanted"},
		{"- {name: a, secret: " + one + ", tenant: x, origins: [\"https://shop.example/x\"]}", "origins: an origin is wanted"},
		{"- {name: a, secret: " + one + ", tenant: x, origins: \"*\"}", "origins: an origin is wanted"},
		{"- {name: a, secret: " + one + ", tenant: x, origins: []}", "an empty list"},
		{"- {name: a, secret: " + one + ", origins: [\"https://shop.example\"]}", "tenant: missing"},
		{"- {name: a, secret: " + one + ", tenant: x, may: [write, read], origins: [\"https://shop.example\"]}", "may: a token with origins"},
		{"- name: a\n  secret: \"" + one + "\"\n- name: a\n  secret: \"" + two + "\"", "a is taken in line 1"},
		{"- name: a\n  secret: \"" + one + "\"\n- name: b\n  secret: \"" + one + "\"", "tokens a and b have the same"},
		{"- name: a\n  secret: \"" + one + "\"\n  may: delete", "write, read or operate is wanted"},
		{"- name: a\n  secret: \"" + one + "\"\n  may: []", "of no use"},
		{"- name: a\n  secret: \"" + one + "\"\n  durability: best", "buffered or synced"},
		{"- name: a\n  secret: \"" + one + "\"\n  events_per_second: -1", "a number above 0"},
		{"- name: a\n  secret: \"" + one + "\"\n  weight: 0", "a number from 1 to 1000"},
		{"- name: a\n  secret: \"" + one + "\"\n  tenant: [x]", "a value is wanted"},
		{"- name: a\n  secret: [" + one + "]", "a string in quotes is wanted"},
		{"- name: \"" + one + "\n", "not valid YAML"},
		{"- name: a\n  secret: *" + one + "\n", "not valid YAML"},
	} {
		k, err := Parse("f", []byte(tc.text))
		if err == nil || k != nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%q: %v, want %q", tc.text, err, tc.want)
		}
		if err != nil && strings.Contains(err.Error(), one) {
			t.Errorf("%q: the secret is in %v", tc.text, err)
		}
	}
	if _, err := Load(filepath.Join(t.TempDir(), "none")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a file that is not there: %v", err)
	}
}

func TestCredentials(t *testing.T) {
	for _, tc := range []struct{ header, value, query, want string }{
		{"Authorization", "Bearer s3", "", "s3"},
		{"Authorization", "bearer  s3 ", "", "s3"},
		{"Authorization", "Splunk s3", "", "s3"},
		{"Authorization", "Basic dXNlcjpzMw==", "", "s3"}, // user:s3
		{"Authorization", "ApiKey aWQ6czM=", "", "s3"},    // id:s3
		{"Authorization", "ApiKey s3", "", "s3"},
		{"Authorization", "ApiKey 0123456789abcdef", "", "0123456789abcdef"}, // base64 of no colon
		{"Authorization", "Basic !!", "", ""},
		{"Authorization", "Digest s3", "", ""},
		{"Authorization", "s3", "", ""},
		{"Authorization", "Sentry sentry_version=7, sentry_key=s3, sentry_client=x/1", "", "s3"},
		{"X-Sentry-Auth", "Sentry sentry_key=s3,sentry_version=7", "", "s3"},
		{"X-Sentry-Auth", "sentry_key=s3", "", ""},
		{"DD-API-KEY", "s3", "", "s3"},
		{"", "", "ddsource=nodejs&dd-api-key=s3", "s3"},
		{"", "", "sentry_version=7&sentry_key=s3", "s3"},
		{"", "", "x_sentry_key=1&dd-api-key=s3", "s3"},
		{"Authorization", "Bearer s3", "sentry_key=other", "s3"},
		{"", "", "token=s3", ""},
	} {
		r, err := http.NewRequest("POST", "http://x/?"+tc.query, nil)
		if err != nil {
			t.Fatal(err)
		}
		if tc.header != "" {
			r.Header.Set(tc.header, tc.value)
		}
		if got := Credentials(r); got != tc.want {
			t.Errorf("%s: %s ?%s: %q, want %q", tc.header, tc.value, tc.query, got, tc.want)
		}
	}
}

func TestAllowance(t *testing.T) {
	k, err := Parse("f", []byte("- name: a\n  secret: \""+one+"\"\n  bytes_per_second: 1000\n  events_per_second: 10\n"))
	if err != nil {
		t.Fatal(err)
	}
	token, now := k.Find(one), time.Unix(1000, 0)
	wait := func(what string, want time.Duration) {
		t.Helper()
		if got := token.Wait(now); got != want {
			t.Errorf("%s: wait %v, want %v", what, got, want)
		}
	}
	wait("at first", 0)
	token.Charge(now, 1000, 10)
	wait("all used, nothing owed", 0)
	token.Charge(now, 500, 20)
	wait("two seconds of events are owed", 2*time.Second)
	now = now.Add(time.Second)
	wait("one is left", time.Second)
	now = now.Add(-time.Hour)
	wait("the clock was set back", time.Second)
	now = now.Add(time.Hour + time.Minute)
	wait("after a long time", 0)
	token.Charge(now, 1001, 0)
	wait("no more was saved than one second's", time.Millisecond)
}

func TestFindDoesNotAllocate(t *testing.T) {
	k, err := Parse("f", []byte("- name: a\n  secret: \""+one+"\"\n  bytes_per_second: 1TiB\n"))
	if err != nil {
		t.Fatal(err)
	}
	secret := strings.Clone(one)
	fewest := testkit.Mallocs(func() {
		for range 10_000 {
			token := k.Find(secret)
			token.Wait(time.Now())
			token.Charge(time.Now(), 1, 1)
		}
	})
	if fewest != 0 {
		t.Errorf("%d allocations in 10,000 lookups", fewest)
	}
}

func FuzzTokens(f *testing.F) {
	f.Add([]byte("- name: a\n  secret: \"" + one + "\"\n  may: [write, read]\n"))
	f.Add([]byte("- {name: a, secret_sha256: x, may: write}\n- &a [*a]"))
	f.Fuzz(func(t *testing.T, text []byte) {
		k, err := Parse("f", text)
		if (k == nil) == (err == nil) {
			t.Fatalf("%v, %v", k, err)
		}
		for _, token := range k.Tokens() {
			if token.Name == "" || token.Rights == 0 {
				t.Fatalf("%+v", token)
			}
		}
	})
}

func TestOrigins(t *testing.T) {
	k, err := Parse("f", fmt.Appendf(nil, "- {name: page, secret: %q, tenant: shop, origins: [\"https://Shop.example:443\", \"https://*.shop.example\", \"http://localhost:3000\"]}\n- {name: server, secret: %q, tenant: shop}\n", one, two))
	if err != nil {
		t.Fatal(err)
	}
	page, server := k.Find(one), k.Find(two)
	for origin, want := range map[string]bool{
		"https://shop.example": true, "https://a.shop.example": true, "https://a.b.shop.example": true, "http://localhost:3000": true,
		"https://.shop.example": false, "http://shop.example": false, "https://shop.example:8443": false, "https://evilshop.example": false,
		"https://evil.example/.shop.example": false, "https://a:b@c.shop.example": false, "http://localhost": false, "null": false, "": false, "https://": false,
	} {
		if page.ListsOrigin(origin) != want || k.ListsOrigin(origin) != want || server.ListsOrigin(origin) {
			t.Errorf("%q: %v", origin, page.ListsOrigin(origin))
		}
	}
	if !page.OfPages() || server.OfPages() || page.Scope() != ".page" || server.Scope() != "shop" || page.Tenant() != "shop" {
		t.Errorf("%+v %+v", page, server)
	}
	page.Charge(time.Now(), 10*PageBytes, 1)
	if page.Wait(time.Now()) <= 0 {
		t.Error("a token that names no rates has none")
	}
	if (*Keyring)(nil).ListsOrigin("https://shop.example") {
		t.Error("nobody lists an origin")
	}
}
