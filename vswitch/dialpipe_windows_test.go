package vswitch

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/Microsoft/go-winio"
)

// answerOld plays an ovsdb-server whose schema has nothing of what we need.
func answerOld(conn net.Conn) {
	defer conn.Close()
	for in := json.NewDecoder(bufio.NewReader(conn)); ; {
		var request struct {
			Method string          `json:"method"`
			ID     json.RawMessage `json:"id"`
		}
		if in.Decode(&request) != nil {
			return
		}
		result := `{}`
		if request.Method == "get_schema" {
			result = `{"name":"Open_vSwitch","version":"0.0.1","tables":{}}`
		}
		if _, err := fmt.Fprintf(conn, `{"id":%s,"error":null,"result":%s}`, request.ID, result); err != nil {
			return
		}
	}
}

// What the client thinks of the schema shows that both directions work.
func TestClientOverNamedPipe(t *testing.T) {
	id := fmt.Sprintf("podnet-%d", os.Getpid())
	l, err := winio.ListenPipe(`\\.\pipe\C:`+id+`db.sock`, &winio.PipeConfig{MessageMode: true, InputBufferSize: 65000, OutputBufferSize: 65000})
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	defer wg.Wait()
	defer l.Close()
	wg.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			wg.Go(func() { answerOld(conn) })
		}
	})
	client, err := New(Config{Endpoint: "pipe:db.sock", Dial: DialPipe(`C:\` + id + `\db.sock`), Bridge: "br-int"})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	err = client.serve(ctx)
	if err == nil || !strings.Contains(err.Error(), "this Open vSwitch is too old: its database schema 0.0.1") {
		t.Errorf("%v", err)
	}
}
