package collector

import (
	"fmt"
	"net"
	"os"
	"strings"
	"testing"
)

// Where port 4317 is taken, the error says how to do without it.
func TestPortOfGRPCIsTaken(t *testing.T) {
	cfg := testConfig(t)
	pid := os.Getpid() // an address of this process's own
	host := fmt.Sprintf("127.%d.%d.%d", 64+pid>>16&63, pid>>8&255, pid&255)
	cfg.Listen = host + ":4318"
	l, err := net.Listen("tcp", host+":4317")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	c, err := New(cfg, nil)
	if err == nil {
		c.Close()
	}
	if err == nil || !strings.Contains(err.Error(), "cannot listen on "+host+":4317 (listen_grpc)") || !strings.Contains(err.Error(), `listen_grpc: "", as gRPC is taken at `+host+`:4318 too`) {
		t.Errorf("New = %v", err)
	}
	cfg.ListenGRPC = ""
	if c, err = New(cfg, nil); err != nil {
		t.Fatal(err)
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
}
