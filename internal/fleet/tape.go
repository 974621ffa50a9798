package fleet

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
)

// tape keeps answers in a folder, or gives them back. A file has the question and the answer as
// they went over the wire; neither has credentials, nor the engine's address.
type tape struct{ record, replay string }

// taped is a file of a tape.
type taped struct {
	Path   string          `json:"path"` // of the API, from /api/v1 on
	Args   url.Values      `json:"args"`
	Status int             `json:"status"`
	Answer json.RawMessage `json:"answer"`
}

func newTape(record, replay string) (*tape, error) {
	if record != "" && replay != "" {
		return nil, errors.New("--record and --replay: one of them")
	}
	if record != "" {
		if err := os.MkdirAll(record, 0o700); err != nil {
			return nil, fmt.Errorf("--record: %w", err)
		}
	} else if st, err := os.Stat(replay); err != nil || !st.IsDir() {
		return nil, fmt.Errorf("--replay %s: want a folder that --record made", replay)
	}
	return &tape{record, replay}, nil
}

// timeArgs are the arguments that say when: a replay is asked at another time of the day.
var timeArgs = []string{"time", "start", "end", "timeout", "partial_response", "dedup", "max_source_resolution"}

func question(r *http.Request, body []byte) taped {
	path := r.URL.Path
	if i := strings.Index(path, "/api/v1"); i >= 0 {
		path = path[i:]
	}
	args := r.URL.Query()
	if form, err := url.ParseQuery(string(body)); err == nil {
		for k, v := range form {
			args[k] = v
		}
	}
	return taped{Path: path, Args: args}
}

// name is the file of a question, whenever it is asked.
func (q taped) name() string {
	args := url.Values{}
	for k, v := range q.Args {
		args[k] = v
	}
	for _, k := range timeArgs {
		args.Del(k)
	}
	sum := sha256.Sum256([]byte(q.Path + "?" + args.Encode()))
	return hex.EncodeToString(sum[:12]) + ".json"
}

func (t *tape) keep(r *http.Request, body []byte, status int, answer []byte) error {
	q := question(r, body)
	q.Status, q.Answer = status, answer
	if !json.Valid(answer) {
		q.Answer, _ = json.Marshal(string(answer))
	}
	b, err := json.Marshal(q)
	if err == nil {
		err = os.WriteFile(filepath.Join(t.record, q.name()), b, 0o600)
	}
	if err != nil {
		return fmt.Errorf("record an answer: %w", err)
	}
	return nil
}

func (t *tape) play(r *http.Request, body []byte) (*http.Response, error) {
	q := question(r, body)
	b, err := os.ReadFile(filepath.Join(t.replay, q.name()))
	if errors.Is(err, fs.ErrNotExist) {
		b = []byte(`{"status":422,"answer":{"status":"error","errorType":"execution","error":"this question is not among the recorded ones"}}`)
	} else if err != nil {
		return nil, fmt.Errorf("replay: %w", err)
	}
	var a taped
	if err := json.Unmarshal(b, &a); err != nil {
		return nil, fmt.Errorf("replay %s: %w", q.name(), err)
	}
	return &http.Response{
		StatusCode: a.Status, Status: http.StatusText(a.Status), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{"Content-Type": {"application/json"}}, Request: r,
		Body: io.NopCloser(bytes.NewReader(a.Answer)), ContentLength: int64(len(a.Answer)),
	}, nil
}
