package lab

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// startTime is how long an agent may take until it can serve.
const startTime = 30 * time.Second

// stopTime is how long an agent may take to end.
const stopTime = 10 * time.Second

// process is a running agent.
type process struct {
	cmd  *exec.Cmd
	done chan struct{} // closed when it has ended
	err  error         // of Wait, to be read after done
}

// StartAgent starts the agent and waits until it can serve ADD.
func (n *Node) StartAgent(ctx context.Context) error {
	if err := n.LaunchAgent(); err != nil {
		return err
	}
	return n.WaitReady(ctx)
}

// LaunchAgent starts the agent and does not wait.
func (n *Node) LaunchAgent() error {
	if n.agent != nil {
		return errors.New("the agent runs already")
	}
	p, err := n.launch()
	n.agent = p
	return err
}

func (n *Node) launch() (*process, error) {
	log, err := os.OpenFile(n.logPath(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	cmd := exec.Command(n.cfg.Agent, "agent", "--config", n.ConfigPath())
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	p := &process{cmd: cmd, done: make(chan struct{})}
	go func() {
		p.err = cmd.Wait()
		close(p.done)
	}()
	return p, nil
}

// WaitReady waits until the plugin's STATUS says that ADD can be served.
func (n *Node) WaitReady(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startTime)
	defer cancel()
	for {
		_, err := n.Plugin.Run(ctx, Call{Command: "STATUS", Stdin: n.NetConf(nil)})
		if err == nil {
			return nil
		}
		select {
		case <-n.agent.done:
			return fmt.Errorf("the agent ended: %v\n%s", n.agent.err, n.AgentLog(30))
		case <-ctx.Done():
			return fmt.Errorf("the agent does not become ready: %w\n%s", err, n.AgentLog(30))
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// StopAgent asks the agent to end and reports when it does not do so well. No agent: nil.
func (n *Node) StopAgent() error {
	if n.agent == nil {
		return nil
	}
	p := n.agent
	n.agent = nil
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	select {
	case <-p.done:
		if p.err != nil {
			return fmt.Errorf("the agent ended badly: %w\n%s", p.err, n.AgentLog(30))
		}
		return nil
	case <-time.After(stopTime):
		// Its goroutines tell what it waits for.
		err := p.cmd.Process.Signal(syscall.SIGQUIT)
		<-p.done
		return errors.Join(err, fmt.Errorf("the agent did not end within %s\n%s", stopTime, n.AgentLog(200)))
	}
}

// KillAgent ends the agent with SIGKILL.
func (n *Node) KillAgent() error {
	p := n.agent
	n.agent = nil
	if err := p.cmd.Process.Kill(); err != nil {
		return err
	}
	<-p.done
	return nil
}

// AgentPID is the process id of the agent.
func (n *Node) AgentPID() int { return n.agent.cmd.Process.Pid }

// SecondAgent starts another agent with the same configuration, waits until it
// ends and returns what it printed.
func (n *Node) SecondAgent(ctx context.Context) (string, error) {
	return output(ctx, n.cfg.Agent, "agent", "--config", n.ConfigPath())
}

// AgentLog returns the last lines of the agent's output.
func (n *Node) AgentLog(last int) string {
	raw, err := os.ReadFile(n.logPath())
	if err != nil {
		return err.Error()
	}
	all := strings.Split(strings.TrimRight(string(raw), "\n"), "\n")
	return strings.Join(all[max(0, len(all)-last):], "\n")
}

func (n *Node) logPath() string { return filepath.Join(n.Dir, "agent.log") }

// output runs a command and returns its standard output; what it wrote to
// standard error is in the error.
func output(ctx context.Context, name string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	var out, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &stderr
	if err := cmd.Run(); err != nil {
		return out.String(), fmt.Errorf("%s %s: %w: %s", filepath.Base(name), strings.Join(args, " "), err, strings.TrimSpace(stderr.String()))
	}
	return out.String(), nil
}
