package collector

import (
	"crypto/sha256"
	"crypto/tls"
	"fmt"
	"net/http"
	"net/netip"
	"os"

	"github.com/rollway/rollway/collector/access"
	"github.com/rollway/rollway/collector/admission"
	"github.com/rollway/rollway/collector/config"
	"github.com/rollway/rollway/collector/enrich"
	"github.com/rollway/rollway/collector/forwarded"
	"github.com/rollway/rollway/collector/receiver"
	"github.com/rollway/rollway/collector/secrets"
	"github.com/rollway/rollway/collector/ulid"
)

// state is what Reload replaces as a whole: who may talk to the collector and what is done
// to events, as read from files. It does not change. A request keeps the state that was in
// force when it began.
type state struct {
	tokens  *access.Keyring // nil: everybody may do everything
	tls     *tls.Config     // nil: not encrypted
	proxies *forwarded.Trust
	program *enrich.Program // what is done to events; nil: nothing

	userHeader, roleHeader string // in which proxies name persons; "": in none

	policy receiver.Policy // all of it, as the receiver asks for it
}

// loadState reads all files that cfg names. ids go on over reloads.
func loadState(cfg config.Config, ids *ulid.Source) (*state, error) {
	s := &state{userHeader: cfg.UI.UserHeader, roleHeader: cfg.UI.RoleHeader}
	var err error
	if path := cfg.Access.Tokens; path != "" {
		if s.tokens, err = access.Load(path); err != nil {
			return nil, err
		}
		s.policy.Extras = access.ExtrasOf("")
	}
	if s.proxies, err = forwarded.New(cfg.Proxies.Trusted, cfg.Proxies.Header); err != nil {
		return nil, fmt.Errorf("proxies: %w", err)
	}
	if s.tls, err = secrets.TLS(cfg.TLS); err != nil {
		return nil, err
	}
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	names, err := cfg.Normalize.Keys()
	if err != nil {
		return nil, err
	}
	if s.program, err = enrich.Compile(cfg.Enrich, cfg.Rules, cfg.Normalize.Parse, enrich.Environment{Host: host, IDs: ids, Tenants: s.tokens != nil, Names: names}); err != nil {
		return nil, err
	}
	s.policy.Admit, s.policy.Client, s.policy.Page = s.admit, s.proxies.Client, s.tokens.ListsOrigin
	if s.program != nil { // not a nil *Program
		s.policy.Enricher = s.program
	}
	return s, nil
}

// CheckFiles returns what is wrong with enrich and rules in cfg, or with the files
// of tokens, certificates, networks and secrets that it names: then New would fail.
func CheckFiles(cfg config.Config) error {
	if _, err := loadState(cfg, new(ulid.Source)); err != nil {
		return err
	}
	if _, err := secrets.Forward(cfg.Forward); err != nil {
		return err
	}
	if cfg.Kafka.Brokers == "" {
		return nil
	}
	if _, err := secrets.KafkaTLS(cfg.Kafka); err != nil {
		return err
	}
	cfg.Kafka.PasswordEnv = "" // of the collector's environment
	_, err := secrets.KafkaPassword(cfg.Kafka)
	return err
}

// admit is receiver.Policy.Admit.
func (s *state) admit(r *http.Request) (receiver.Sender, error) {
	if own, is := r.Context().Value(ownKey{}).(ownRequest); is {
		return own.sender, nil
	}
	token, err := s.identify(r, access.Write)
	if token == nil {
		return nil, err // not a nil *Token
	}
	return token, nil
}

// enforce puts s into force. All tokens of a tenant share what the one with the greatest
// weight gets. Sessions whose token is gone, or may do something else, end.
func (c *Collector) enforce(s *state) {
	weights := make(map[string]int)
	for _, t := range s.tokens.Tokens() {
		weights[t.Scope()] = max(weights[t.Scope()], t.Weight())
	}
	for _, t := range s.tokens.Tokens() {
		t.SetPrincipal(c.admission.Named(t.Scope(), weights[t.Scope()]))
	}
	if before := c.state.Load(); before != nil {
		c.sessions.Keep(func(sum [sha256.Size]byte) bool {
			was, is := before.tokens.FindSum(sum), s.tokens.FindSum(sum)
			return was != nil && is != nil && was.Tenant() == is.Tenant() && was.Rights == is.Rights
		})
	}
	c.state.Store(s)
}

// Reload reads the files of tokens, certificates and networks that cfg names again and puts
// them into force all together, with what cfg says of proxies, headers of persons, enrich, rules and normalize.parse. Other
// settings cannot change while the collector runs. If one did, or a file cannot be used,
// the error says which and why, and nothing is changed.
func (c *Collector) Reload(cfg config.Config) error {
	if err := cfg.Check(); err != nil {
		return err
	}
	same := cfg
	same.Access, same.TLS, same.Proxies = c.config.Access, c.config.TLS, c.config.Proxies
	same.UI.UserHeader, same.UI.RoleHeader = c.config.UI.UserHeader, c.config.UI.RoleHeader
	same.Enrich, same.Rules, same.Normalize.Parse = c.config.Enrich, c.config.Rules, c.config.Normalize.Parse
	if key := same.Difference(&c.config); key != "" {
		return fmt.Errorf("%s is another than at the start, which takes a restart; nothing was changed", key)
	}
	next, err := loadState(cfg, c.ids)
	if err != nil {
		return fmt.Errorf("nothing was changed: %w", err)
	}
	if (next.tls == nil) != (c.state.Load().tls == nil) {
		return fmt.Errorf("tls.cert: to begin or end TLS takes a restart; nothing was changed")
	}
	c.enforce(next)
	c.warnExposed(cfg)
	return nil
}

// client is the address of who sends a request.
func (s *state) client(r *http.Request) netip.Addr {
	return s.proxies.Client(admission.PeerOf(r), r.Header)
}
