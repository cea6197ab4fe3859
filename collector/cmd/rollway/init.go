package main

import (
	"cmp"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	_ "embed"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/rollway/rollway/collector/config"
	"github.com/rollway/rollway/internal/probe"
)

// serviceUnit is the unit of the Debian package, with its paths and its user.
//
//go:embed rollway.service
var serviceUnit string

// What the Debian package has, and serviceUnit names.
const (
	packageDir  = "/etc/rollway"
	packageData = "/var/lib/rollway"
	packageUser = "rollway"
	packageExec = "/usr/bin/rollway"
	packageUnit = "/usr/lib/systemd/system/rollway.service"
)

var initCommand = &command{
	name:    "init",
	summary: "write a configuration with tokens, certificates and a unit",
	help: `
Writes into a folder what a collector needs that others may reach:

  rollway.yaml     its configuration
  tokens.yaml      hashes of three tokens: writer, reader, operator
  tokens/          the tokens themselves, to be given to clients
  server.pem .key  its certificate, for all names and addresses of -host, and
                   for localhost and this machine's name; valid for 825 days
  ca.pem           the authority that signed it, for clients: ROLLWAY_CA
  ca/ca.key        the key of the authority, valid for 10 years: move it to
                   another machine, and back for -renew
  rollway.service  a unit for systemd, unless a package has installed the same

Without -host it listens on loopback alone. Files that exist are not replaced
without -force. As root it gives the collector's user leave to read what it
needs, and nothing else.

Examples:
  rollway init -host logs.example -host 192.0.2.7
  rollway init -dir ./try
  rollway init -renew -host logs.example   a new certificate of the same authority
`,
	setup: setupInit,
}

// An installation is what init writes.
type installation struct {
	dir, data, listen, user string
	hosts                   []string
	force, renew            bool

	exec     string
	uid, gid int // of the collector, if this process is root and the collector is not; -1: it is not so
}

func setupInit(flags *flag.FlagSet) action {
	s := &installation{uid: -1, gid: -1}
	flags.StringVar(&s.dir, "dir", packageDir, "write into this `DIR`")
	flags.StringVar(&s.data, "data", "", "the `DIR` of the journal (default \""+packageData+"\" as root, data in -dir otherwise)")
	flags.StringVar(&s.listen, "listen", "", "listen for HTTP at `ADDR` (default \"0.0.0.0:4318\" with -host, \"127.0.0.1:4318\" without)")
	flags.StringVar(&s.user, "user", "", "the `NAME` of the collector's user (default \""+packageUser+"\" as root, yourself otherwise)")
	listFlag(flags, &s.hosts, "host", "a `NAME` or address under which clients reach the collector")
	flags.BoolVar(&s.force, "force", false, "replace files that exist, the authority and the tokens too")
	flags.BoolVar(&s.renew, "renew", false, "write nothing but a new certificate, signed by the authority in -dir")
	return func(c *call, args []string) error {
		if len(args) > 0 {
			return usagef("unexpected argument %q; names are given by -host", args[0])
		}
		if err := s.complete(); err != nil {
			return err
		}
		files, err := s.files()
		if err == nil {
			err = s.write(files)
		}
		if err == nil {
			err = c.show(s.next(files))
		}
		return err
	}
}

// complete checks the flags and fills in what was not given.
func (s *installation) complete() error {
	for _, h := range s.hosts {
		if net.ParseIP(h) == nil && (h == "" || strings.ContainsAny(h, ":/* ")) {
			return usagef("-host %q is neither a name nor an address: give it without scheme and port", h)
		}
	}
	me, err := user.Current()
	if err != nil {
		return err
	}
	data, owner, listen := filepath.Join(s.dir, "data"), me.Username, "127.0.0.1:4318"
	if os.Geteuid() == 0 {
		data, owner = packageData, packageUser
	}
	if len(s.hosts) > 0 {
		listen = "0.0.0.0:4318"
	}
	s.data, s.user, s.listen = cmp.Or(s.data, data), cmp.Or(s.user, owner), cmp.Or(s.listen, listen)
	for _, path := range []*string{&s.dir, &s.data} {
		if *path, err = filepath.Abs(*path); err != nil {
			return err
		}
		if strings.ContainsAny(*path, " \t\"'\\%$") {
			return usagef("%q has characters that mean something in a unit: choose another folder", *path)
		}
	}
	if os.Geteuid() == 0 && s.user != me.Username {
		who, err := user.Lookup(s.user)
		if err != nil {
			return fmt.Errorf("%w: make it with 'useradd --system --user-group --home-dir %s --shell /usr/sbin/nologin %s', or name another with -user", err, s.data, s.user)
		}
		uid, notUID := strconv.Atoi(who.Uid)
		gid, notGID := strconv.Atoi(who.Gid)
		if err := errors.Join(notUID, notGID); err != nil {
			return err
		}
		s.uid, s.gid = uid, gid
	}
	s.exec, err = os.Executable()
	return err
}

// An initFile is a file that init writes.
type initFile struct {
	name string // in the folder
	text []byte
	mode fs.FileMode
}

// Modes of files. What groupMode has is for the collector too, if that has a user of its own.
const (
	publicMode fs.FileMode = 0o644
	secretMode fs.FileMode = 0o600
	groupMode  fs.FileMode = 0o640
)

// files makes all files.
func (s *installation) files() ([]initFile, error) {
	hosts := slices.Clone(s.hosts)
	name, _ := os.Hostname() // a certificate without it serves
	for _, h := range []string{"localhost", "127.0.0.1", "::1", name} {
		if h != "" && !slices.Contains(hosts, h) {
			hosts = append(hosts, h)
		}
	}
	var files []initFile
	ca, err := tls.LoadX509KeyPair(s.path("ca.pem"), s.path("ca/ca.key"))
	if !s.renew {
		var cert, key []byte
		if cert, key, err = issue("Rollway authority of "+hosts[0], nil, nil); err != nil {
			return nil, err
		}
		files = append(files, initFile{"ca.pem", cert, publicMode}, initFile{"ca/ca.key", key, secretMode})
		ca, err = tls.X509KeyPair(cert, key)
	}
	if err != nil {
		return nil, err
	}
	cert, key, err := issue(hosts[0], hosts, &ca)
	if err != nil {
		return nil, err
	}
	files = append(files, initFile{"server.pem", cert, publicMode}, initFile{"server.key", key, groupMode})
	if s.renew {
		s.force = true
		return files, nil
	}
	list := "# The tokens of the collector, by 'rollway init'. Their secrets are in the folder tokens.\n"
	for _, t := range [][2]string{{"writer", "write"}, {"reader", "read"}, {"operator", "read, operate"}} {
		secret := rand.Text()
		list += fmt.Sprintf("- name: %s\n  secret_sha256: \"%x\"\n  may: [%s]\n", t[0], sha256.Sum256([]byte(secret)), t[1])
		files = append(files, initFile{"tokens/" + t[0], []byte(secret + "\n"), secretMode})
	}
	files = append(files, initFile{"tokens.yaml", []byte(list), groupMode}, initFile{"rollway.yaml", []byte(s.settings()), publicMode})
	unit := s.unit()
	if text, err := os.ReadFile(packageUnit); err != nil || string(text) != unit {
		files = append(files, initFile{"rollway.service", []byte(unit), publicMode})
	}
	return files, nil
}

func (s *installation) path(name string) string {
	return filepath.Join(s.dir, filepath.FromSlash(name))
}

// settings is the configuration. Half of what is free is kept for the journal.
func (s *installation) settings() string {
	dir := s.data
	for !exists(dir) && dir != filepath.Dir(dir) {
		dir = filepath.Dir(dir)
	}
	retain := 10 * config.GiB
	if space := probe.SpaceOf(dir); space != nil {
		retain = max(config.Size(space.Free/2)/config.GiB, 1) * config.GiB
	}
	names := ""
	for _, h := range s.hosts {
		if net.ParseIP(h) == nil {
			names += h + " "
		}
	}
	return fmt.Sprintf(`# The configuration of a collector, by 'rollway init'. 'rollway check -example' prints
# all settings with explanations; 'rollway check' checks this file.
listen: %q
hosts: %q
data: %q
access:
  tokens: %q
tls:
  cert: %q
  key: %q
journal:
  # Beyond this size the oldest lines are removed. It is half of what was free.
  retain_size: %v
`, s.listen, strings.TrimSpace(names), s.data, s.path("tokens.yaml"), s.path("server.pem"), s.path("server.key"), retain)
}

// unit is the unit with the paths of this installation.
func (s *installation) unit() string {
	pairs := []string{packageExec + " serve", s.exec + " serve", packageDir + "/rollway.yaml", s.path("rollway.yaml"),
		"User=" + packageUser + "\n", "User=" + s.user + "\n"}
	if s.data != packageData {
		pairs = append(pairs, "StateDirectory=rollway\nStateDirectoryMode=0700\n", "ReadWritePaths="+s.data+"\n")
	}
	if paths := s.exec + s.dir + s.data; strings.Contains(paths, "/home/") || strings.Contains(paths, "/root/") {
		pairs = append(pairs, "ProtectHome=yes", "ProtectHome=read-only")
	}
	return strings.NewReplacer(pairs...).Replace(serviceUnit)
}

// write writes all files, or none if one exists and may not be replaced, and makes the data
// folder.
func (s *installation) write(files []initFile) error {
	var exist []string
	for _, f := range files {
		if _, err := os.Lstat(s.path(f.name)); err == nil && !s.force {
			exist = append(exist, f.name)
		}
	}
	if len(exist) > 0 {
		return fmt.Errorf("%s has %s already: nothing was written; -force replaces what is there, -renew the certificate alone", s.dir, strings.Join(exist, ", "))
	}
	if err := os.MkdirAll(s.dir, 0o755); err != nil {
		return fmt.Errorf("%w; name another folder with -dir", err)
	}
	for _, f := range files {
		if err := s.writeFile(f); err != nil {
			return err
		}
	}
	if s.renew || exists(s.data) {
		return nil
	}
	err := os.MkdirAll(s.data, 0o700)
	if err == nil && s.uid >= 0 {
		err = os.Chown(s.data, s.uid, s.gid)
	}
	return err
}

// writeFile makes a file, so that nothing comes into one, or through a link, that somebody
// else has made.
func (s *installation) writeFile(f initFile) error {
	path := s.path(f.name)
	if dir := filepath.Dir(path); dir != s.dir {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return err
		}
	}
	if s.force {
		_ = os.Remove(path) // if it stays, it cannot be made
	}
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, secretMode)
	if err != nil {
		return err
	}
	_, err = file.Write(f.text)
	switch {
	case f.mode == groupMode && s.gid < 0:
		f.mode = secretMode
	case f.mode == groupMode:
		err = errors.Join(err, file.Chown(-1, s.gid))
	}
	return errors.Join(err, file.Chmod(f.mode), file.Close())
}

// next tells what was written and what to run, for programs and for people.
func (s *installation) next(files []initFile) (v any, text string) {
	var names, commands []string
	start := "systemctl enable --now rollway"
	for _, f := range files {
		names = append(names, f.name)
		if f.name == "rollway.service" {
			start = "cp " + s.path(f.name) + " /etc/systemd/system/ && " + start
		}
	}
	settings := s.path("rollway.yaml")
	_, port, _ := net.SplitHostPort(s.listen)
	at := net.JoinHostPort(append(s.hosts, "localhost")[0], port)
	switch {
	case s.renew:
		commands = []string{"systemctl reload rollway"}
	case os.Geteuid() == 0:
		commands = []string{start}
	default:
		commands = []string{fmt.Sprintf("%s serve -config %s", program(), settings)}
	}
	if !s.renew {
		commands = append(commands, fmt.Sprintf("%s doctor -config %s", program(), settings),
			fmt.Sprintf("ROLLWAY_CA=%s ROLLWAY_TOKEN=$(cat %s) %s send -addr https://%s FILE", s.path("ca.pem"), s.path("tokens/writer"), program(), at))
	}
	return struct {
		Dir     string   `json:"dir"`
		Written []string `json:"written"`
		Next    []string `json:"next"` // commands
	}{s.dir, names, commands}, fmt.Sprintf("Written in %s: %s\n\nNext:\n  %s\n", s.dir, strings.Join(names, " "), strings.Join(commands, "\n  "))
}
