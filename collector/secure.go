package collector

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net/http"
	"net/netip"
	"os"
	"sync/atomic"

	"github.com/rollway/rollway/collector/access"
	"github.com/rollway/rollway/collector/config"
	"github.com/rollway/rollway/collector/forwarded"
	"github.com/rollway/rollway/collector/receive"
)

// security is what of a configuration says who may talk to the collector, as
// read from its files. It is replaced as a whole by Reload.
type security struct {
	tokens  *access.Keyring // nil: everybody may do everything
	tls     *tls.Config     // nil: not encrypted
	proxies *forwarded.Trust
}

func loadSecurity(cfg config.Config) (*security, error) {
	s := new(security)
	var err error
	if path := cfg.Access.Tokens; path != "" {
		if s.tokens, err = access.Load(path); err != nil {
			return nil, err
		}
	}
	if s.proxies, err = forwarded.New(cfg.Proxies.Trusted, cfg.Proxies.Header); err != nil {
		return nil, fmt.Errorf("proxies: %w", err)
	}
	if cfg.TLS.Cert == "" {
		return s, nil
	}
	cert, err := tls.LoadX509KeyPair(cfg.TLS.Cert, cfg.TLS.Key)
	if err != nil {
		return nil, fmt.Errorf("tls.cert %s with tls.key %s: %w", cfg.TLS.Cert, cfg.TLS.Key, err)
	}
	s.tls = &tls.Config{
		MinVersion:   tls.VersionTLS12,
		Certificates: []tls.Certificate{cert},
		NextProtos:   []string{"h2", "http/1.1"},
	}
	if path := cfg.TLS.ClientCA; path != "" {
		pem, err := os.ReadFile(path)
		if err != nil {
			return nil, fmt.Errorf("tls.client_ca: %w", err)
		}
		s.tls.ClientCAs = x509.NewCertPool()
		if !s.tls.ClientCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("tls.client_ca: there is no certificate in %s: PEM is wanted", path)
		}
		s.tls.ClientAuth = tls.RequireAndVerifyClientCert
	}
	return s, nil
}

// serverTLS returns what the HTTP server is to speak; nil: plain HTTP. Each
// handshake goes by what is in force when it begins.
func serverTLS(now *atomic.Pointer[security]) *tls.Config {
	if now.Load().tls == nil {
		return nil
	}
	return &tls.Config{
		MinVersion:         tls.VersionTLS12,
		NextProtos:         []string{"h2", "http/1.1"},
		GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) { return now.Load().tls, nil },
	}
}

// streamTLS is serverTLS for what is not HTTP.
func streamTLS(now *atomic.Pointer[security]) *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS12,
		GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) {
			config := now.Load().tls.Clone()
			config.NextProtos = nil
			return config, nil
		},
	}
}

// Reload reads the files of tokens, certificates and networks again, those that
// cfg names, and puts them into force all together, with what cfg says of proxies,
// enrich and rules. Other settings cannot change while the collector runs: if one did, or a file cannot be used, the error
// says which and why, and nothing is changed.
func (c *Collector) Reload(cfg config.Config) error {
	if err := cfg.Check(); err != nil {
		return err
	}
	same := cfg
	same.Access, same.TLS, same.Proxies = c.config.Access, c.config.TLS, c.config.Proxies
	same.Enrich, same.Rules = c.config.Enrich, c.config.Rules
	if key := same.Difference(&c.config); key != "" {
		return fmt.Errorf("%s is another than at the start, which takes a restart; nothing was changed", key)
	}
	next, err := loadSecurity(cfg)
	if err != nil {
		return fmt.Errorf("nothing was changed: %w", err)
	}
	if (next.tls == nil) != (c.security.Load().tls == nil) {
		return fmt.Errorf("tls.cert: to begin or end TLS takes a restart; nothing was changed")
	}
	program, err := compileEnrichment(cfg, c.ids)
	if err != nil {
		return fmt.Errorf("nothing was changed: %w", err)
	}
	c.program.Store(program)
	c.security.Store(next)
	return nil
}

// client is receive.Options.Client.
func (c *Collector) client(peer netip.Addr, h http.Header) netip.Addr {
	return c.security.Load().proxies.Client(peer, h)
}

// admit is receive.Options.Admit.
func (c *Collector) admit(r *http.Request) (receive.Sender, error) {
	token, err := c.identify(r, access.Write)
	if token == nil {
		return nil, err // not a nil *Token
	}
	return token, nil
}

// identify returns the token of a request that may do what it asks for, or why
// it may not. Without tokens both are nil.
func (c *Collector) identify(r *http.Request, right access.Right) (*access.Token, error) {
	keyring := c.security.Load().tokens
	if keyring == nil {
		return nil, nil
	}
	secret := access.Credentials(r)
	if secret == "" {
		return nil, &receive.Refusal{Code: http.StatusUnauthorized, Text: `a token is needed here; send it as "Authorization: Bearer SECRET"`}
	}
	token := keyring.Find(secret)
	switch {
	case token == nil:
		return nil, &receive.Refusal{Code: http.StatusUnauthorized, Text: "the token is not known here"}
	case !token.May(right) && right == access.Write:
		return nil, &receive.Refusal{Code: http.StatusForbidden, Text: "token " + token.Name + " may not write"}
	case !token.May(right):
		return nil, &receive.Refusal{Code: http.StatusForbidden, Text: "token " + token.Name + " may not read"}
	}
	return token, nil
}

// readers lets those through who may read.
func (c *Collector) readers(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, err := c.identify(r, access.Read); err != nil {
			refusal := err.(*receive.Refusal)
			if refusal.Code == http.StatusUnauthorized {
				w.Header().Set("WWW-Authenticate", "Bearer")
			}
			writeJSON(w, refusal.Code, map[string]any{"error": refusal.Text})
			return
		}
		next.ServeHTTP(w, r)
	})
}
