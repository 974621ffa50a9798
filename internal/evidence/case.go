package evidence

import (
	"archive/zip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Bounds of what we hold of a case. It may come from anywhere, and may be a zip bomb.
const (
	maxMembers  = 4096
	maxManifest = 16 << 20
	maxIndex    = 4 << 20 // bytes read to find the zip's members
	maxName     = 200
)

// ErrNotCase is the error for a zip or a folder without a manifest.
var ErrNotCase = errors.New("holds no manifest.json: this is not a case of whystall")

// Case is a case that is open for reading: a file, or the folder of a recording that is under way
// or was killed.
type Case struct {
	Name     string
	Partial  bool // a folder: recording goes on, or was killed
	Manifest *Manifest

	file    *os.File // nil for a folder
	members map[string]*zip.File
	names   []string
	sizes   map[string]int64
}

// Open opens a case file or the folder NAME.part. It reads only the manifest.
func Open(name string) (*Case, error) {
	c, err := open(name)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", name, FileCause(err))
	}
	return c, nil
}

func open(name string) (*Case, error) {
	st, err := os.Stat(name)
	if err != nil {
		return nil, err
	}
	c := &Case{Name: name, sizes: map[string]int64{}}
	if st.IsDir() {
		err = c.readFolder()
	} else {
		err = c.readZip(st)
	}
	if err == nil {
		if !slices.Contains(c.names, manifestMember) {
			err = ErrNotCase
		} else {
			err = c.readManifest()
		}
	}
	if err != nil {
		c.Close()
		return nil, err
	}
	return c, nil
}

func (c *Case) readFolder() error {
	c.Partial = true
	entries, err := os.ReadDir(c.Name)
	if err != nil {
		return err
	}
	if len(entries) > maxMembers {
		return fmt.Errorf("holds %d files, a case at most %d", len(entries), maxMembers)
	}
	for _, e := range entries {
		// Links and the like could lead out of the folder, and a pipe would block.
		if !e.Type().IsRegular() || checkMember(e.Name()) != nil {
			continue
		}
		info, err := e.Info()
		if err != nil {
			continue // removed meanwhile
		}
		c.names = append(c.names, e.Name())
		c.sizes[e.Name()] = info.Size()
	}
	return nil
}

func (c *Case) readZip(st fs.FileInfo) error {
	if !st.Mode().IsRegular() {
		return errors.New("not a regular file")
	}
	var err error
	if c.file, err = os.Open(c.Name); err != nil {
		return err
	}
	return c.index(c.file, st.Size())
}

// A member may be mostPacked times as large as packed, and mostUnpacked bytes in any case.
const (
	mostPacked   = 100
	mostUnpacked = 64 << 20
)

// index reads the zip's directory. The bound on what it reads bounds what it allocates.
func (c *Case) index(r io.ReaderAt, size int64) error {
	bounded := &boundedReaderAt{r: r, left: maxIndex}
	z, err := zip.NewReader(bounded, size)
	bounded.left = unbounded
	if err != nil {
		if errors.Is(err, zip.ErrFormat) {
			return errors.New("not a zip file, or cut short: copy it again")
		}
		return err
	}
	if len(z.File) > maxMembers {
		return fmt.Errorf("holds %d members, a case at most %d", len(z.File), maxMembers)
	}
	c.members = map[string]*zip.File{}
	for _, f := range z.File {
		if strings.HasSuffix(f.Name, "/") && f.UncompressedSize64 == 0 {
			continue // some packers list folders
		}
		if err := checkMember(f.Name); err != nil {
			return err
		}
		if c.members[f.Name] != nil {
			return fmt.Errorf("member %q appears twice", f.Name)
		}
		if f.Method != zip.Store && f.Method != zip.Deflate {
			return fmt.Errorf("member %q: compression method %d is not known", f.Name, f.Method)
		}
		if f.Flags&1 != 0 {
			return fmt.Errorf("member %q is encrypted: unpack it first", f.Name)
		}
		if f.UncompressedSize64 > 1<<62 {
			return fmt.Errorf("member %q: size %d", f.Name, f.UncompressedSize64)
		}
		// A trace in a case is unpacked to disk: 3 MB of packed zeros would fill it. Traces pack to
		// a quarter, readings that hardly change to a fiftieth.
		if f.UncompressedSize64 > mostUnpacked+mostPacked*f.CompressedSize64 {
			return fmt.Errorf("member %q: %d bytes, packed to less than 1/%d: no recording is like that", f.Name, f.UncompressedSize64, mostPacked)
		}
		c.members[f.Name] = f
		c.names = append(c.names, f.Name)
		c.sizes[f.Name] = int64(f.UncompressedSize64)
	}
	return nil
}

func (c *Case) readManifest() error {
	b, err := c.Read(manifestMember, maxManifest)
	if err != nil {
		return err
	}
	c.Manifest, err = ParseManifest(b)
	return err
}

// Names lists all members except the manifest, sorted.
func (c *Case) Names() []string {
	out := slices.DeleteFunc(slices.Clone(c.names), func(n string) bool { return n == manifestMember })
	slices.Sort(out)
	return out
}

// Size is a member's size in bytes, as the case states it; -1 if there is no such member.
func (c *Case) Size(member string) int64 {
	if n, ok := c.sizes[member]; ok {
		return n
	}
	return -1
}

// OpenMember opens a member as a stream. If its bytes do not match its checksum, the stream ends
// with an error.
func (c *Case) OpenMember(member string) (io.ReadCloser, error) {
	if _, ok := c.sizes[member]; !ok {
		return nil, fmt.Errorf("open %s in %s: no such member", member, c.Name)
	}
	if c.file == nil && c.members == nil {
		return os.Open(filepath.Join(c.Name, member))
	}
	r, err := c.members[member].Open()
	if err != nil {
		return nil, fmt.Errorf("open %s in %s: %w", member, c.Name, err)
	}
	return r, nil
}

// Read returns a whole member of at most limit bytes.
func (c *Case) Read(member string, limit int64) ([]byte, error) {
	r, err := c.OpenMember(member)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	// The size in the directory may be wrong, so the bytes that come are counted.
	b, err := io.ReadAll(io.LimitReader(r, limit+1))
	if err != nil {
		return nil, fmt.Errorf("read %s in %s: %w", member, c.Name, err)
	}
	if int64(len(b)) > limit {
		return nil, fmt.Errorf("read %s in %s: more than %d MiB", member, c.Name, limit>>20)
	}
	return b, nil
}

// Locate finds a member that is stored uncompressed: size bytes at offset of file. ok is false for
// a compressed one: use OpenMember.
func (c *Case) Locate(member string) (file string, offset, size int64, ok bool) {
	size, ok = c.sizes[member]
	if !ok {
		return "", 0, 0, false
	}
	if c.members == nil {
		return filepath.Join(c.Name, member), 0, size, true
	}
	f := c.members[member]
	offset, err := f.DataOffset()
	if err != nil || c.file == nil || f.Method != zip.Store || f.CompressedSize64 != f.UncompressedSize64 {
		return "", 0, 0, false
	}
	// The directory may point past the file's end.
	st, err := c.file.Stat()
	if err != nil || offset < 0 || offset > st.Size() || size > st.Size()-offset {
		return "", 0, 0, false
	}
	return c.Name, offset, size, true
}

// Close closes the file.
func (c *Case) Close() error {
	if c.file == nil {
		return nil
	}
	return c.file.Close()
}

// checkMember accepts only names that cannot lead out of a folder on any file system and mean
// nothing to a terminal.
func checkMember(name string) error {
	bad := name == "" || len(name) > maxName || name[0] == '.' || !fs.ValidPath(name)
	for _, c := range []byte(name) {
		ok := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '.' ||
			c == '-' || c == '_' || c == '/'
		bad = bad || !ok
	}
	if bad {
		return fmt.Errorf("member %.60q: not a name that a case uses", name)
	}
	return nil
}

// boundedReaderAt returns at most left bytes over all reads. If left is unbounded, it does not
// count.
type boundedReaderAt struct {
	r    io.ReaderAt
	left int64
}

const unbounded = -1

var errIndex = errors.New("its list of members is too long for a case")

func (b *boundedReaderAt) ReadAt(p []byte, off int64) (int, error) {
	if b.left != unbounded {
		if int64(len(p)) > b.left {
			return 0, errIndex
		}
		b.left -= int64(len(p))
	}
	return b.r.ReadAt(p, off)
}
