package forwarded

import (
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"testing"
)

const trusted = "10.0.0.0/8 192.0.2.1 2001:db8:ffff::/48"

func mustNew(t testing.TB, networks, header string) *Trust {
	t.Helper()
	trust, err := New(networks, header)
	if err != nil {
		t.Fatal(err)
	}
	return trust
}

// client is what Client says of a request of peer with lines of a header.
func client(trust *Trust, peer, name string, lines ...string) string {
	return trust.Client(netip.MustParseAddr(peer), http.Header{name: lines}).String()
}

const proxy = "10.1.1.1"

func TestXForwardedFor(t *testing.T) {
	trust := mustNew(t, trusted, XForwardedFor)
	for _, tc := range []struct {
		peer string
		want string
		xff  []string
	}{
		{proxy, proxy, nil},
		{proxy, proxy, []string{""}},
		{"203.0.113.9", "203.0.113.9", []string{"198.51.100.1"}}, // made up by a client
		{proxy, "203.0.113.9", []string{"203.0.113.9"}},
		{"::ffff:10.1.1.1", "203.0.113.9", []string{"203.0.113.9"}},
		{"192.0.2.1", "203.0.113.9", []string{"203.0.113.9"}},
		{"2001:db8:ffff::1", "2001:db8::7", []string{"2001:db8::7"}},
		{proxy, "203.0.113.9", []string{"198.51.100.1, 203.0.113.9"}},
		{proxy, "203.0.113.9", []string{"198.51.100.1,203.0.113.9,10.2.2.2 ,\t192.0.2.1"}},
		{proxy, "10.3.3.3", []string{"10.3.3.3, 10.2.2.2"}}, // all are trusted: the first
		{proxy, "203.0.113.9", []string{"198.51.100.1", "203.0.113.9", "10.2.2.2, 10.2.2.3"}},
		{proxy, "10.2.2.2", []string{"203.0.113.9, unknown, 10.2.2.2"}},
		{proxy, proxy, []string{"203.0.113.9, nonsense"}},
		{proxy, proxy, []string{"203.0.113.9, 1.2.3"}},
		{proxy, proxy, []string{"203.0.113.9, fe80::1%eth0"}},
		{proxy, "203.0.113.9", []string{"203.0.113.9:4711"}},
		{proxy, "2001:db8::7", []string{"[2001:db8::7]"}},
		{proxy, "2001:db8::7", []string{"[2001:db8::7]:4711"}},
		{proxy, "203.0.113.9", []string{"::ffff:203.0.113.9"}},
		{proxy, proxy, []string{"203.0.113.9:"}},
		{proxy, proxy, []string{"203.0.113.9:port"}},
		{proxy, proxy, []string{"203.0.113.9:123456"}},
		{proxy, proxy, []string{"[2001:db8::7"}},
		{proxy, proxy, []string{"[2001:db8::7]x"}},
		{proxy, proxy, []string{"[203.0.113.9]"}},
		{proxy, proxy, []string{"[]"}},
		{proxy, proxy, []string{`"203.0.113.9"`}},
		{proxy, "203.0.113.9", []string{"198.51.100.1,, 203.0.113.9, ,10.2.2.2,"}},
		{proxy, proxy, []string{strings.Repeat("1", 1000)}},
		{proxy, proxy, []string{"203.0.113.9" + strings.Repeat(",", maxHops+1)}},
		{proxy, "10.2.2.2", []string{"203.0.113.9" + strings.Repeat(",10.2.2.2", maxHops)}},
		{proxy, "203.0.113.9", []string{"203.0.113.9" + strings.Repeat(",10.2.2.2", maxHops-1)}},
	} {
		if got := client(trust, tc.peer, "X-Forwarded-For", tc.xff...); got != tc.want && got != "::ffff:"+tc.want {
			t.Errorf("%s, %q: %s, want %s", tc.peer, tc.xff, got, tc.want)
		}
	}
	if got := client(trust, proxy, "Forwarded", "for=203.0.113.9"); got != proxy {
		t.Errorf("the header that is not configured says %s", got)
	}
}

// Examples of RFC 7239, and headers that cannot be read.
func TestForwarded(t *testing.T) {
	trust := mustNew(t, trusted, Forwarded)
	for _, tc := range []struct {
		want  string
		lines []string
	}{
		{proxy, nil},
		{proxy, []string{""}},
		{proxy, []string{`for="_gazonk"`}},
		{"2001:db8:cafe::17", []string{`For="[2001:db8:cafe::17]:4711"`}},
		{"192.0.2.60", []string{`for=192.0.2.60;proto=http;by=203.0.113.43`}},
		{"198.51.100.17", []string{`for=192.0.2.43, for=198.51.100.17`}},
		{"198.51.100.17", []string{`for=_hidden, for=198.51.100.17;by=10.9.9.9;proto=https;host=example.com`}},
		{"2001:db8:cafe::17", []string{`for=192.0.2.43,for="[2001:db8:cafe::17]",for=10.0.0.2`}},
		{"192.0.2.43", []string{`for=192.0.2.43,   for=192.0.2.1`}},
		{"192.0.2.43", []string{`for=192.0.2.43`, `for="192.0.2.1:80" , for="10.1.1.2:_port"`}},
		{"10.0.0.2", []string{`for=192.0.2.43, for=unknown, for=10.0.0.2`}},
		{"10.0.0.2", []string{`for=192.0.2.43, proto=https, for=10.0.0.2`}}, // a hop without an address
		{"192.0.2.43", []string{`, for=192.0.2.43 ,, ;for=10.0.0.2; ,`}},
		{"192.0.2.43", []string{`for=192.0.2.43;ext="a,b;for=1.2.3.4\", for=5.6.7.8"`}},
		{"192.0.2.43", []string{`for=192.0.2.43:80`}},
		{"2001:db8::7", []string{`for=[2001:db8::7]:80`}},
		// Forms that are none: nothing in their line is believed.
		{proxy, []string{`for=192.0.2.43;x="`}},
		{proxy, []string{`for=9.9.9.9;x=", for=192.0.2.43`}},
		{proxy, []string{`for=9.9.9.9;x=", for="[2001:db8::7]"`}},
		{proxy, []string{`for=192.0.2.43;for=192.0.2.44`}},
		{proxy, []string{`for = 192.0.2.43`}},
		{proxy, []string{`192.0.2.43`}},
		{proxy, []string{`for=`}},
		{proxy, []string{`=192.0.2.43`}},
		{proxy, []string{`for=192.0.2.43 for=192.0.2.44`}},
		{proxy, []string{"for=\"192.0.2.43\x01\""}},
		{"192.0.2.43", []string{`for=9.9.9.9;x="`, `for=192.0.2.43`}},
		{"10.0.0.2", []string{`for=9.9.9.9`, `;x="`, `for=10.0.0.2`}},
		{"10.2.2.2", []string{"for=9.9.9.9" + strings.Repeat(",for=10.2.2.2", maxHops)}},
		{"192.0.2.43", []string{"for=192.0.2.43" + strings.Repeat(",for=10.2.2.2", maxHops-1)}},
		{"10.2.2.2", append([]string{"for=9.9.9.9"}, slices.Repeat([]string{"for=10.2.2.2"}, maxHops)...)},
	} {
		if got := client(trust, proxy, "Forwarded", tc.lines...); got != tc.want {
			t.Errorf("%q: %s, want %s", tc.lines, got, tc.want)
		}
	}
	if got := client(trust, proxy, "X-Forwarded-For", "203.0.113.9"); got != proxy {
		t.Errorf("the header that is not configured says %s", got)
	}
	if got := client(trust, "192.0.2.43", "Forwarded", "for=203.0.113.9"); got != "192.0.2.43" {
		t.Errorf("somebody has made up %s", got)
	}
}

func TestNew(t *testing.T) {
	for _, tc := range []struct{ networks, header, want string }{
		{"10.0.0.0/8", "x-real-ip", "neither"},
		{"10.0.0.1/8", XForwardedFor, "the network is 10.0.0.0/8"},
		{"10.0.0.0/8 proxy", XForwardedFor, `"proxy" is no network`},
		{"10.0.0.0/33", XForwardedFor, "no network"},
		{"fe80::1%eth0", XForwardedFor, "no network"},
		{"::ffff:10.0.0.0/104", XForwardedFor, "no network"},
		{strings.Repeat("10.0.0.1 ", maxNetworks+1), XForwardedFor, "more than 256"},
	} {
		if trust, err := New(tc.networks, tc.header); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%.50q, %s: %v, %v, want %q", tc.networks, tc.header, trust, err, tc.want)
		}
	}
	none := mustNew(t, " ", XForwardedFor)
	if none != nil || client(none, proxy, "X-Forwarded-For", "203.0.113.9") != proxy {
		t.Error("proxies are trusted that nobody has named")
	}
	if trust := mustNew(t, "::ffff:192.0.2.1", XForwardedFor); client(trust, "192.0.2.1", "X-Forwarded-For", "203.0.113.9") != "203.0.113.9" {
		t.Error("an IPv4 address in IPv6 is not that address")
	}
	if (netip.Addr{}) != none.Client(netip.Addr{}, nil) {
		t.Error("a peer without an address has got one")
	}
}

// The walk from the end, which stops early, and the whole of a line allocate nothing.
func TestClientAllocatesNothing(t *testing.T) {
	for header, line := range map[string]string{
		XForwardedFor: "198.51.100.1, 203.0.113.9:80, [2001:db8:ffff::1]:7, unknown",
		Forwarded:     `for=_a, for="203.0.113.9:80";proto=https, for="[2001:db8:ffff::1]:7"`,
	} {
		trust := mustNew(t, trusted, header)
		h := http.Header{"X-Forwarded-For": {line}, "Forwarded": {line}}
		peer := netip.MustParseAddr(proxy)
		if n := testing.AllocsPerRun(100, func() { trust.Client(peer, h) }); n != 0 {
			t.Errorf("%s: %v allocations", header, n)
		}
	}
}

// Whatever the header is, the client is peer or an address in it that only
// trusted ones follow; nothing before a last address that is not trusted
// changes anything.
func FuzzClient(f *testing.F) {
	for _, s := range []string{
		"198.51.100.1, 203.0.113.9", "[2001:db8::7]:80", `for="[2001:db8:cafe::17]:4711"`, `for=192.0.2.43;ext="a,b\"";proto=http, for=10.0.0.2`,
		"unknown", "10.0.0.1,,", `for=9.9.9.9;x="`, "for=a\nfor=b",
	} {
		f.Add(s)
	}
	peer := netip.MustParseAddr(proxy)
	trusts := map[string]*Trust{XForwardedFor: mustNew(f, trusted, XForwardedFor), Forwarded: mustNew(f, trusted, Forwarded)}
	f.Fuzz(func(t *testing.T, s string) {
		lines := strings.Split(s, "\n")
		for name, trust := range trusts {
			header := "X-Forwarded-For"
			last := "203.0.113.9"
			if name == Forwarded {
				header, last = "Forwarded", `for="203.0.113.9"`
			}
			got := trust.Client(peer, http.Header{header: lines})
			if !got.IsValid() || got.Zone() != "" || got != peer && got.Is4In6() {
				t.Errorf("%s %q: %v", name, s, got)
			}
			if got := trust.Client(peer, http.Header{header: append(slices.Clone(lines), last)}); got.String() != "203.0.113.9" {
				t.Errorf("%s %q before an address makes it %v", name, s, got)
			}
			joined := s + ", " + last
			if got := trust.Client(peer, http.Header{header: {joined}}); got.String() != "203.0.113.9" && (name == XForwardedFor || got != peer) {
				t.Errorf("%s %q in a line before an address makes it %v", name, s, got)
			}
		}
	})
}
