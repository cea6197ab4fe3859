package direct

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"time"

	"github.com/rollway/rollway/bench/internal/measure"
)

// childEnv has the job of a child process.
const childEnv = "ROLLWAY_BENCH_DIRECT"

// A job is what a child process is to do.
type job struct {
	Role    string        `json:"role"` // server, verifier or disk
	Dir     string        `json:"dir"`  // of the log files
	Bytes   int           `json:"bytes"`
	Period  time.Duration `json:"period"` // between two requests
	Threads int           `json:"threads"`
	Design  string        `json:"design"` // what logs; "" is slab.Writer
	Logging bool          `json:"logging"`
	Copies  bool          `json:"copies"` // copy each record instead
	Buffer  int           `json:"buffer"`
	Shards  int           `json:"shards"`
	Sets    int           `json:"sets"`
	Segment int64         `json:"segment"`
	Flush   time.Duration `json:"flush"`

	Realtime bool `json:"realtime"` // the process was started by one with measure.Realtime
}

// Main does not return in a child process.
func Main() {
	text := os.Getenv(childEnv)
	if text == "" {
		return
	}
	var j job
	var answer any
	err := json.Unmarshal([]byte(text), &j)
	if err == nil && j.Realtime && j.Role != "server" {
		err = measure.Timeshared()
	}
	if err == nil {
		switch j.Role {
		case "server":
			answer, err = serve(j, os.Stdin, os.Stdout)
		case "verifier":
			answer, err = verify(j, os.Stdin)
		case "disk":
			answer, err = keepDiskBusy(j, os.Stdin, os.Stdout)
		default:
			err = fmt.Errorf("no role %q", j.Role)
		}
	}
	if err == nil {
		err = json.NewEncoder(os.Stdout).Encode(answer)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(3)
	}
	os.Exit(0)
}

// A child is a process of this program with a job. It ends when its standard
// input does, and then prints what it found.
type child struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
}

func startChild(j job) (*child, error) {
	program, err := os.Executable()
	if err != nil {
		return nil, err
	}
	encoded, err := json.Marshal(j)
	if err != nil {
		return nil, err
	}
	c := &child{cmd: exec.Command(program)}
	c.cmd.Env = append(os.Environ(), childEnv+"="+string(encoded))
	c.cmd.Stderr = os.Stderr
	if c.in, err = c.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := c.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	c.out = bufio.NewReader(out)
	return c, c.cmd.Start()
}

// end tells the child to end and decodes its answer.
func (c *child) end(answer any) error {
	c.in.Close()
	err := json.NewDecoder(c.out).Decode(answer)
	if e := c.cmd.Wait(); e != nil {
		return fmt.Errorf("child process: %w", e)
	}
	return err
}

// cpu is what the child has used, once it has ended.
func (c *child) cpu() time.Duration {
	return c.cmd.ProcessState.UserTime() + c.cmd.ProcessState.SystemTime()
}

// kill ends a child that is no longer needed.
func (c *child) kill() {
	c.cmd.Process.Kill()
	c.cmd.Wait()
}
