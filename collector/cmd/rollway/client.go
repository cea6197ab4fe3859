package main

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/rollway/rollway/internal/backoff"
)

const defaultAddr = "http://127.0.0.1:4318"

// A client talks to one collector. It is safe for concurrent use.
type client struct {
	base string // scheme and host, without a slash at the end
	http *http.Client
}

func addrFlag(flags *flag.FlagSet) *string {
	return flags.String("addr", "", "the collector's `URL` (default ROLLWAY_ADDR, else "+defaultAddr+"); ROLLWAY_TOKEN is the token for it, ROLLWAY_CA the PEM file of its certificate authority")
}

// asking returns the action of a command that asks a collector. f gets a context that a
// signal ends.
func asking(flags *flag.FlagSet, f func(ctx context.Context, c *call, cl *client, args []string) error) action {
	addr := addrFlag(flags)
	return func(c *call, args []string) error {
		cl, err := newClient(*addr)
		if err != nil {
			return err
		}
		ctx, stop := interruptible()
		defer stop()
		return f(ctx, c, cl, args)
	}
}

// newClient checks addr, which may lack the scheme; empty: the one in the environment, or
// the default.
func newClient(addr string) (*client, error) {
	source := "-addr"
	if addr == "" {
		addr, source = cmp.Or(os.Getenv(addrEnv), defaultAddr), addrEnv
	}
	text := addr
	if !strings.Contains(text, "://") {
		text = "http://" + text
	}
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, usagef("%s %q is not a collector's address; write it like %s", source, addr, defaultAddr)
	}
	if strings.Trim(u.Path, "/") != "" || u.RawQuery != "" {
		return nil, usagef("%s %q: give the collector's address alone, without %s", source, addr, u.RequestURI())
	}
	roots, err := rootsFromEnv()
	if err != nil {
		return nil, err
	}
	return &client{
		base: u.Scheme + "://" + u.Host,
		http: &http.Client{CheckRedirect: keepToken, Transport: &http.Transport{
			TLSClientConfig:       &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: roots},
			DialContext:           (&net.Dialer{Timeout: 5 * time.Second}).DialContext,
			TLSHandshakeTimeout:   5 * time.Second,
			ResponseHeaderTimeout: time.Minute,
			MaxIdleConnsPerHost:   2,
			DisableCompression:    true, // gzip would delay lines until a block is full
		}},
	}, nil
}

// Environment variables of a client: the address of the collector, the token, which must
// not appear in a list of processes, and the PEM file of the authority that signed the
// collector's certificate.
const (
	addrEnv  = "ROLLWAY_ADDR"
	tokenEnv = "ROLLWAY_TOKEN"
	caEnv    = "ROLLWAY_CA"
)

// rootsFromEnv returns the authorities to trust, or nil for the system's.
func rootsFromEnv() (*x509.CertPool, error) {
	path := os.Getenv(caEnv)
	if path == "" {
		return nil, nil
	}
	pem, err := os.ReadFile(path)
	if err != nil {
		return nil, usagef("%s: %v", caEnv, err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(pem) {
		return nil, usagef("%s: %s contains no PEM certificate", caEnv, path)
	}
	return pool, nil
}

// do sends a request with the token. The caller closes the body of the response.
func (cl *client) do(ctx context.Context, method, path string, header http.Header, body []byte) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, method, cl.base+path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	maps.Copy(req.Header, header)
	if token := os.Getenv(tokenEnv); token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	resp, err := cl.http.Do(req)
	if err != nil {
		return nil, cl.explain(err)
	}
	return resp, nil
}

// keepToken removes the token from a redirect to another host, or out of TLS.
func keepToken(req *http.Request, via []*http.Request) error {
	if first := via[0].URL; req.URL.Host != first.Host || first.Scheme == "https" && req.URL.Scheme != "https" {
		req.Header.Del("Authorization")
	}
	if len(via) >= 10 {
		return errors.New("stopped after 10 redirects")
	}
	return nil
}

// get requests path with query, for which wantOK is called.
func (cl *client) get(ctx context.Context, path string, query url.Values, header http.Header) (*http.Response, error) {
	if len(query) > 0 {
		path += "?" + query.Encode()
	}
	return wantOK(cl.do(ctx, http.MethodGet, path, header, nil))
}

// wantOK returns a response whose status is 200. Any other status is a *statusError.
func wantOK(resp *http.Response, err error) (*http.Response, error) {
	if err == nil && resp.StatusCode != http.StatusOK {
		defer resp.Body.Close()
		return nil, newStatusError(theCollector, resp)
	}
	return resp, err
}

// getJSON decodes the answer to a request for path into v. An answer that is not JSON is
// a *json.SyntaxError.
func (cl *client) getJSON(ctx context.Context, path string, v any) error {
	resp, err := cl.get(ctx, path, nil, nil)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err == nil {
		err = json.Unmarshal(text, v)
	}
	if err != nil {
		return fmt.Errorf("read the answer of %s%s: %w", cl.base, path, err)
	}
	return nil
}

// explain adds to the error of a failed connection what to do about it.
func (cl *client) explain(err error) error {
	if op, ok := errors.AsType[*net.OpError](err); ok && op.Op == "dial" {
		if !errors.Is(op.Err, syscall.ECONNREFUSED) && !errors.Is(op.Err, refusedOnWindows) {
			return fmt.Errorf("cannot reach %s: %w; name the collector's address with -addr or %s", cl.base, op.Err, addrEnv)
		}
		start := "start one with 'rollway serve'"
		if cl.base != defaultAddr {
			_, host, _ := strings.Cut(cl.base, "://")
			start = "start one there with 'rollway serve -listen " + host + "'"
		}
		return fmt.Errorf("no collector listens at %s: %w; %s, or name another with -addr or %s", cl.base, op.Err, start, addrEnv)
	}
	if u, ok := errors.AsType[*url.Error](err); ok {
		err = fmt.Errorf("%s: %w", cl.base, u.Err)
	}
	switch {
	case errors.As(err, new(x509.UnknownAuthorityError)):
		err = fmt.Errorf("%w; if your own authority signed the certificate, name its PEM file in %s", err, caEnv)
	case errors.As(err, new(x509.HostnameError)):
		err = fmt.Errorf("%w; name the collector with -addr as its certificate does", err)
	case errors.As(err, new(x509.CertificateInvalidError)):
		err = fmt.Errorf("%w; renew the certificate of the collector or of its authority (%s), or set this machine's clock", err, caEnv)
	case errors.Is(err, http.ErrSchemeMismatch):
		err = fmt.Errorf("%w; it has no TLS: write http:// in -addr or %s", err, addrEnv)
	}
	return err
}

// refusedOnWindows is WSAECONNREFUSED, which is not syscall.ECONNREFUSED there.
const refusedOnWindows = syscall.Errno(10061)

// statusError is a response other than a success, with the server's message.
type statusError struct {
	server  string
	code    int
	message string
	body    []byte
	after   time.Duration // Retry-After; 0: absent
}

// theCollector is the server of a statusError, unless it is another kind of server.
const theCollector = "the collector"

func (e *statusError) Error() string {
	text := fmt.Sprintf("%s answers %d %s: %s", e.server, e.code, http.StatusText(e.code), e.message)
	switch {
	case e.server != theCollector:
	case e.code == http.StatusUnauthorized && os.Getenv(tokenEnv) == "":
		text += "; set " + tokenEnv + " to the secret of a token that the collector's file of tokens has"
	case e.code == http.StatusUnauthorized:
		text += "; " + tokenEnv + " must be the secret of a token that the collector's file of tokens has"
	case e.code == http.StatusForbidden && strings.Contains(e.message, " may not "):
		text += "; add the right to 'may' of that token, or set " + tokenEnv + " to a token that has it"
	default:
		text += plainToTLS(e.code, e.body)
	}
	return text
}

// plainToTLS returns what to do if an answer is that of a port which speaks TLS.
func plainToTLS(code int, body []byte) string {
	if code == http.StatusBadRequest && bytes.Contains(body, []byte("to an HTTPS server")) {
		return " Write https:// in -addr or " + addrEnv + "."
	}
	return ""
}

// maxAnswer bounds the bytes read of a response that is not a stream.
const maxAnswer = 8 << 20

func newStatusError(server string, resp *http.Response) *statusError {
	e := &statusError{server: server, code: resp.StatusCode}
	e.body, _ = io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	e.message = serverMessage(e.body)
	if s, err := time.ParseDuration(resp.Header.Get("Retry-After") + "s"); err == nil && s > 0 {
		e.after = s
	}
	return e
}

// serverMessage returns the text of {"error":"…"}, or the first line of body, made
// safe for a terminal.
func serverMessage(body []byte) string {
	var answer struct {
		Error string `json:"error"`
	}
	if json.Unmarshal(body, &answer) == nil && answer.Error != "" {
		rows := strings.Split(answer.Error, "\n") // a syntax error points at its column
		for i := range rows {
			rows[i] = string(appendPlain(nil, rows[i]))
		}
		return strings.Join(rows, "\n")
	}
	line, _, _ := strings.Cut(strings.TrimSpace(string(body)), "\n")
	if line == "" {
		return "(no message)"
	}
	const most = 300
	if len(line) > most {
		line = line[:most] + "…"
	}
	return string(appendPlain(nil, line))
}

// retry calls try until it succeeds, again says no, or limit is over. again returns the
// shortest pause before the next try.
func retry(ctx context.Context, limit time.Duration, try func() error, again func(error) (pause time.Duration, ok bool)) error {
	began := time.Now()
	for failures := 0; ; failures++ {
		err := try()
		if err == nil {
			return nil
		}
		pause, ok := again(err)
		left := limit - time.Since(began)
		pause = min(max(pause, backoff.Wait(failures, 100*time.Millisecond, 5*time.Second)), left)
		switch {
		case !ok, limit == 0:
			return err
		case left <= 0:
			return fmt.Errorf("gave up after %s: %w", shortTime(time.Since(began)), err)
		case !backoff.Sleep(ctx, pause):
			return fmt.Errorf("%w while retrying: %w", context.Canceled, err)
		}
	}
}

// interruptible returns a context that the first SIGINT or SIGTERM cancels. A second
// one ends the process at once. Call stop when done.
func interruptible() (ctx context.Context, stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		<-signals
		cancel()
		if _, again := <-signals; again {
			os.Exit(exitFailed)
		}
	}()
	return ctx, func() {
		signal.Stop(signals)
		close(signals)
		cancel()
	}
}

// interrupted returns err, or nil if Ctrl-C caused it.
func interrupted(ctx context.Context, err error) error {
	if ctx.Err() != nil && errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}
