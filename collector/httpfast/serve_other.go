//go:build !linux

package httpfast

import (
	"context"
	"errors"
	"net"
	"net/http"
)

// Supported tells whether this system is one where New returns a Server.
const Supported = false

// A Server is not to be had on this system.
type Server struct {
	o    Options
	rest *rest
}

// New returns an error.
func New(*net.TCPListener, Options) (*Server, error) {
	return nil, errors.New("httpfast: this needs Linux")
}

// Rest is where connections come out that are handed over.
func (s *Server) Rest() net.Listener { return s.rest }

// Behind does nothing.
func (s *Server) Behind(*http.Server) {}

// Stats returns a snapshot.
func (s *Server) Stats() Stats { return Stats{} }

// Serve returns an error.
func (s *Server) Serve() error { return errors.ErrUnsupported }

// Leave does nothing.
func (s *Server) Leave() error { return nil }

// Shutdown does nothing.
func (s *Server) Shutdown(context.Context) error { return nil }

// Close does nothing.
func (s *Server) Close() error { return nil }
