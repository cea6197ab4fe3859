// Package secrets reads the files of certificates, keys and passwords that a
// configuration names. Its errors name the setting and the file, never what is in it.
package secrets

import (
	"bufio"
	"bytes"
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"
	"strings"

	"github.com/rollway/rollway/collector/config"
	"github.com/rollway/rollway/collector/receiver/forward"
	"github.com/rollway/rollway/internal/disk"
)

// maxSecret is the longest secret in bytes; a longer file is a mistake.
const maxSecret = 4 << 10

// maxConfig bounds what is read of a file.
const maxConfig = 4 << 20

// keyPair is tls.LoadX509KeyPair for files of a configuration.
func keyPair(cert, key string) (tls.Certificate, error) {
	c, err := disk.ReadConfig(cert, maxConfig)
	if err != nil {
		return tls.Certificate{}, err
	}
	k, err := disk.ReadConfig(key, maxConfig)
	if err != nil {
		return tls.Certificate{}, err
	}
	return tls.X509KeyPair(c, k)
}

// Exposed returns a sentence for each file of secrets in cfg that other users can read or
// write.
func Exposed(cfg config.Config) (list []string) {
	for _, f := range []struct{ key, path string }{
		{"access.tokens", cfg.Access.Tokens},
		{"tls.key", cfg.TLS.Key},
		{"forward.shared_key_file", cfg.Forward.SharedKeyFile},
		{"forward.users_file", cfg.Forward.UsersFile},
		{"kafka.password_file", cfg.Kafka.PasswordFile},
		{"kafka.tls_key", cfg.Kafka.TLSKey},
	} {
		if f.path == "" {
			continue
		}
		if may := disk.OthersMay(f.path); may != "" {
			list = append(list, fmt.Sprintf("%s: other users of this machine can %s %s: chmod o= %s", f.key, may, f.path, f.path))
		}
	}
	return list
}

// secretFile reads the secret in a file: its text without a line end.
func secretFile(key, path string) (string, error) {
	b, err := disk.ReadConfig(path, maxConfig)
	if err != nil {
		return "", fmt.Errorf("%s: %w", key, err)
	}
	secret := strings.TrimRight(string(b), "\r\n")
	switch {
	case secret == "":
		return "", fmt.Errorf("%s: %s is empty", key, path)
	case len(secret) > maxSecret || strings.ContainsAny(secret, "\r\n"):
		return "", fmt.Errorf("%s: %s holds more than one line of at most %d bytes", key, path, maxSecret)
	}
	return secret, nil
}

// Forward reads what clients of Fluent forward must know; nil: nothing.
func Forward(cfg config.Forward) (*forward.Security, error) {
	if cfg.SharedKeyFile == "" {
		return nil, nil
	}
	key, err := secretFile("forward.shared_key_file", cfg.SharedKeyFile)
	if err != nil {
		return nil, err
	}
	host, err := os.Hostname()
	if err != nil {
		host = "" // it needs to be no real one
	}
	// Clients refuse a server that has their own name.
	s := &forward.Security{SharedKey: key, Host: "rollway." + cmp.Or(host, "collector")}
	if cfg.UsersFile != "" {
		s.Users, err = readUsers("forward.users_file", cfg.UsersFile)
	}
	return s, err
}

// readUsers reads lines USER:PASSWORD.
func readUsers(key, path string) (map[string]string, error) {
	b, err := disk.ReadConfig(path, maxConfig)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", key, err)
	}
	users := map[string]string{}
	lines := bufio.NewScanner(bytes.NewReader(b))
	for n := 1; lines.Scan(); n++ {
		if strings.TrimSpace(lines.Text()) == "" {
			continue
		}
		user, password, found := strings.Cut(lines.Text(), ":")
		if !found || user == "" || password == "" {
			return nil, fmt.Errorf("%s: line %d of %s is not USER:PASSWORD", key, n, path)
		}
		users[user] = password
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("%s: %s: %w", key, path, err)
	}
	if len(users) == 0 {
		return nil, fmt.Errorf("%s: %s names nobody", key, path)
	}
	return users, nil
}

// KafkaTLS is how connections to brokers are encrypted; nil: not.
func KafkaTLS(k config.Kafka) (*tls.Config, error) {
	if k.TLS != "on" {
		return nil, nil
	}
	c := &tls.Config{MinVersion: tls.VersionTLS12}
	if k.TLSCA != "" {
		var err error
		if c.RootCAs, err = authorities("kafka.tls_ca", k.TLSCA); err != nil {
			return nil, err
		}
	}
	if k.TLSCert != "" {
		cert, err := keyPair(k.TLSCert, k.TLSKey)
		if err != nil {
			return nil, fmt.Errorf("kafka.tls_cert %s with kafka.tls_key %s: %w", k.TLSCert, k.TLSKey, err)
		}
		c.Certificates = []tls.Certificate{cert}
	}
	return c, nil
}

// KafkaPassword reads the password for brokers; "": none.
func KafkaPassword(k config.Kafka) (string, error) {
	switch {
	case k.PasswordFile != "":
		return secretFile("kafka.password_file", k.PasswordFile)
	case k.PasswordEnv != "":
		if password := os.Getenv(k.PasswordEnv); password != "" {
			return password, nil
		}
		return "", fmt.Errorf("kafka.password_env: the environment has no %s", k.PasswordEnv)
	}
	return "", nil
}

// TLS reads the files of certificates that cfg names; nil: not encrypted.
func TLS(cfg config.TLS) (*tls.Config, error) {
	if cfg.Cert == "" {
		return nil, nil
	}
	cert, err := keyPair(cfg.Cert, cfg.Key)
	if err != nil {
		return nil, fmt.Errorf("tls.cert %s with tls.key %s: %w", cfg.Cert, cfg.Key, err)
	}
	c := &tls.Config{
		MinVersion:   tls.VersionTLS12,
		Certificates: []tls.Certificate{cert},
		NextProtos:   HTTPVersions,
	}
	if cfg.ClientCA != "" {
		c.ClientAuth = tls.RequireAndVerifyClientCert
		c.ClientCAs, err = authorities("tls.client_ca", cfg.ClientCA)
	}
	return c, err
}

// HTTPVersions are offered in a handshake. A client that names HTTP/1.0 alone would
// otherwise be refused there.
var HTTPVersions = []string{"h2", "http/1.1", "http/1.0"}

// authorities reads the certificates of a file in PEM; key is the setting that
// names it.
func authorities(key, path string) (*x509.CertPool, error) {
	pem, err := disk.ReadConfig(path, maxConfig)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", key, err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("%s: there is no certificate in %s: PEM is wanted", key, path)
	}
	return pool, nil
}
