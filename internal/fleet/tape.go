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

// idleArgs are the arguments that change no answer.
var idleArgs = []string{"timeout", "partial_response", "dedup", "max_source_resolution"}

// askFile holds what was asked: a replay asks the same, of the same moment.
const askFile = "ask.json"

func keepAsk(dir string, a Ask) error {
	b, err := json.MarshalIndent(a, "", "  ")
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, askFile), append(b, '\n'), 0o600)
	}
	if err != nil {
		return fmt.Errorf("--record: %w", err)
	}
	return nil
}

// Recorded reads what was asked when the answers in a folder were kept.
func Recorded(dir string) (a Ask, err error) {
	f, err := os.Open(filepath.Join(dir, askFile))
	if err != nil {
		return a, fmt.Errorf("--replay %s: want a folder that whystall fleet --record made: it has no %s", dir, askFile)
	}
	defer f.Close()
	if err := json.NewDecoder(io.LimitReader(f, 1<<20)).Decode(&a); err != nil {
		return a, fmt.Errorf("--replay %s: %s: %w", dir, askFile, err)
	}
	if a.Since <= 0 || a.Top < 1 || a.Top > 500 || a.MaxSamples < 1 || a.At.IsZero() {
		return a, fmt.Errorf("--replay %s: %s does not say what was asked", dir, askFile)
	}
	return a, nil
}

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

// name is the file of a question.
func (q taped) name() string {
	args := url.Values{}
	for k, v := range q.Args {
		args[k] = v
	}
	for _, k := range idleArgs {
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
	b, err := readTaped(filepath.Join(t.replay, q.name()))
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

// readTaped reads one file: a folder from elsewhere may hold anything.
func readTaped(name string) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxAnswer+1<<20))
	if err == nil && len(b) > maxAnswer {
		err = errTooLarge
	}
	return b, err
}
