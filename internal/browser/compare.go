package browser

import (
	"bytes"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"os"
)

// A golden is a screenshot made small, so that neither fonts nor smoothing of another machine
// matter, and what moved, vanished or changed its colour does.
const (
	smaller    = 6    // times
	most       = 0.03 // mean difference of a channel, 0..1
	mostTaller = 0.06
)

// Golden compares a screenshot with a golden, or writes it. The error says how they differ.
func Golden(shot []byte, file string, update bool) error {
	got, err := png.Decode(bytes.NewReader(shot))
	if err != nil {
		return fmt.Errorf("decode screenshot: %w", err)
	}
	small := shrink(got, got.Bounds().Dx()/smaller)
	if update {
		var b bytes.Buffer
		if err := png.Encode(&b, small); err != nil {
			return err
		}
		return os.WriteFile(file, b.Bytes(), 0o644)
	}
	b, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	want, err := png.Decode(bytes.NewReader(b))
	if err != nil {
		return fmt.Errorf("decode %s: %w", file, err)
	}
	gh, wh := small.Bounds().Dy(), want.Bounds().Dy()
	if d := float64(gh-wh) / float64(wh); d > mostTaller || d < -mostTaller {
		return fmt.Errorf("%s: %d rows, want %d", file, gh, wh)
	}
	if d := differ(small, want); d > most {
		return fmt.Errorf("%s: differs by %.1f %% on average, at most %.1f %%", file, 100*d, 100*most)
	}
	return nil
}

// shrink averages fields of the image.
func shrink(m image.Image, width int) *image.Paletted {
	b := m.Bounds()
	height := max(1, b.Dy()*width/max(1, b.Dx()))
	palette := make(color.Palette, 0, 216)
	for i := range 216 {
		palette = append(palette, color.RGBA{uint8(i / 36 * 51), uint8(i / 6 % 6 * 51), uint8(i % 6 * 51), 255})
	}
	out := image.NewPaletted(image.Rect(0, 0, width, height), palette)
	for y := range height {
		for x := range width {
			var sum [3]int64
			n := int64(0)
			for v := b.Min.Y + y*b.Dy()/height; v < b.Min.Y+(y+1)*b.Dy()/height; v++ {
				for u := b.Min.X + x*b.Dx()/width; u < b.Min.X+(x+1)*b.Dx()/width; u++ {
					r, g, bl, _ := m.At(u, v).RGBA()
					sum[0], sum[1], sum[2], n = sum[0]+int64(r>>8), sum[1]+int64(g>>8), sum[2]+int64(bl>>8), n+1
				}
			}
			n = max(n, 1)
			out.Set(x, y, color.RGBA{uint8(sum[0] / n), uint8(sum[1] / n), uint8(sum[2] / n), 255})
		}
	}
	return out
}

// differ is the mean difference of a channel, by strips of rows. A line of text more or less moves
// all that is below it, so each strip is looked for near its place.
func differ(a, b image.Image) float64 {
	x, y := rows(a), rows(b)
	near := max(4, len(y)*6/100)
	var sum float64
	n := 0
	for at := 0; at < len(y); at += strip {
		want := y[at:min(at+strip, len(y))]
		least := 1.0
		for by := -near; by <= near; by++ {
			if from := at + by; from >= 0 && from+len(want) <= len(x) {
				least = min(least, apart(x[from:from+len(want)], want))
			}
		}
		sum += least
		n++
	}
	return sum / float64(max(1, n))
}

const strip = 12

// apart is the mean difference of rows that lie one on another.
func apart(a, b [][]uint8) float64 {
	sum, n := 0, 0
	for i := range a {
		for j := range min(len(a[i]), len(b[i])) {
			d := int(a[i][j]) - int(b[i][j])
			sum += max(d, -d)
			n++
		}
	}
	return float64(sum) / 255 / float64(max(1, n))
}

// rows has the channels of each row.
func rows(m image.Image) [][]uint8 {
	b := m.Bounds()
	out := make([][]uint8, b.Dy())
	for y := range out {
		for x := b.Min.X; x < b.Max.X; x++ {
			r, g, bl, _ := m.At(x, b.Min.Y+y).RGBA()
			out[y] = append(out[y], uint8(r>>8), uint8(g>>8), uint8(bl>>8))
		}
	}
	return out
}
