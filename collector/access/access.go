// Package access says who may do what at a collector: tokens, their rights, and how much
// each may send. Lookups compare keyed hashes, so that how long one takes tells nothing
// about a secret. Errors, log lines and metrics name tokens, never secrets.
package access

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"time"

	"github.com/rollway/rollway/collector/admission"
	"github.com/rollway/rollway/collector/normalize"
)

// Right is what a token may do.
type Right uint8

const (
	Write   Right = 1 << iota // send events
	Read                      // query, tail, metrics
	Operate                   // replay dead letters and, with Read, take backups
)

// rights are the names of rights, in the order in which they are listed.
var rights = []namedRight{{"write", Write}, {"read", Read}, {"operate", Operate}}

type namedRight struct {
	name  string
	right Right
}

// Names returns the names of the rights in r.
func (r Right) Names() (list []string) {
	for _, n := range rights {
		if r&n.right != 0 {
			list = append(list, n.name)
		}
	}
	return list
}

// All is every right: what everybody has where there are no tokens.
const All = Write | Read | Operate

// Token is one entry of a file. It is read-only except for its allowance.
type Token struct {
	Name   string // for logs and metrics
	Rights Right

	tenant     string
	weight     int // of its shares; 0 means 1
	principal  *admission.Principal
	durability string
	extras     *normalize.Extras
	origins    []origin
	id         digest
	allowance  allowance
}

// OfTenant returns the token of an address that takes the events of a tenant: it has no
// rights and no bounds.
func OfTenant(tenant string) *Token { return &Token{tenant: tenant, extras: ExtrasOf(tenant)} }

// ExtrasOf returns what each event of a tenant gets. If the tenant is "", that is nothing,
// but a sender's own attribute of the name becomes tenant_2 all the same.
func ExtrasOf(tenant string) *normalize.Extras {
	x := new(normalize.Extras)
	if tenant == "" {
		x.Reserve([]byte(normalize.Tenant))
	} else {
		x.Add(normalize.Tenant, tenant)
	}
	return x
}

// May reports whether the token has the right, or one of several. A nil Token has none.
func (t *Token) May(r Right) bool { return t != nil && t.Rights&r != 0 }

// Scope is the tenant, or else the token's own name after a sign that no tenant's
// begins with. It is that for a token of web pages too: what visitors use up, and the
// idempotency keys that they choose, are not those of their tenant's servers.
func (t *Token) Scope() string {
	if t.tenant == "" || t.OfPages() {
		return "." + t.Name
	}
	return t.tenant
}

// Weight is how many equal shares the token gets of what the collector has.
func (t *Token) Weight() int { return max(t.weight, 1) }

// Principal pays for what is done with the token. SetPrincipal comes before.
func (t *Token) Principal() *admission.Principal { return t.principal }

// SetPrincipal says who pays: one principal for each Scope.
func (t *Token) SetPrincipal(p *admission.Principal) { t.principal = p }

// Durability is what the token's events get unless a request asks for one:
// "buffered", "synced" or "" for the collector's default.
func (t *Token) Durability() string { return t.durability }

// Tenant goes into each event, and the token's owner reads the lines of that tenant alone;
// "": all lines.
func (t *Token) Tenant() string { return t.tenant }

// Extras are what each event gets, see ExtrasOf.
func (t *Token) Extras() *normalize.Extras { return t.extras }

// Wait returns how long the owner of the token should wait before it sends
// again; 0 means that it may now.
func (t *Token) Wait(now time.Time) time.Duration { return t.allowance.wait(now) }

// Charge takes what was sent off the allowance.
func (t *Token) Charge(now time.Time, bytes, events int) { t.allowance.charge(now, bytes, events) }

// Keyring finds tokens by their secrets. It is read-only and safe for
// concurrent use. A nil Keyring has no tokens.
type Keyring struct {
	key    [32]byte // of the hashes, new in each process
	tokens map[digest]*Token
	list   []*Token
	pages  []*Token // of list
}

type digest [sha256.Size]byte

func newKeyring() *Keyring {
	k := &Keyring{tokens: make(map[digest]*Token)}
	rand.Read(k.key[:]) // never fails
	return k
}

// Find returns the token with the secret, or nil.
func (k *Keyring) Find(secret string) *Token {
	if k == nil || secret == "" {
		return nil
	}
	return k.FindSum(Sum(secret))
}

// Sum returns the SHA-256 of a secret.
func Sum(secret string) [sha256.Size]byte { return sha256.Sum256([]byte(secret)) }

// FindSum returns the token whose secret has the SHA-256, or nil.
func (k *Keyring) FindSum(sum [sha256.Size]byte) *Token {
	if k == nil {
		return nil
	}
	d := k.digest(sum)
	// The map compares parts of d first, which nobody can choose without key.
	t := k.tokens[d]
	if t == nil || subtle.ConstantTimeCompare(t.id[:], d[:]) != 1 {
		return nil
	}
	return t
}

// digest is what a secret is known by: sum is its SHA-256.
func (k *Keyring) digest(sum [sha256.Size]byte) digest {
	var keyed [len(k.key) + len(sum)]byte
	copy(keyed[:], k.key[:])
	copy(keyed[len(k.key):], sum[:])
	return sha256.Sum256(keyed[:])
}

// Named returns the token of a name, or nil.
func (k *Keyring) Named(name string) *Token {
	for _, t := range k.Tokens() {
		if t.Name == name {
			return t
		}
	}
	return nil
}

// Tokens returns all tokens in the order of the file.
func (k *Keyring) Tokens() []*Token {
	if k == nil {
		return nil
	}
	return k.list
}
