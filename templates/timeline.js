(() => {
'use strict';
// The strip: SVG lanes of one window; what is narrower than a pixel is drawn together with its neighbours.
const SVG = 'http://www.w3.org/2000/svg', LABEL = 112, ROW = 20, AXIS = 22, MOST = 4000;
const make = (name, at, text) => {
  const e = document.createElementNS(SVG, name);
  for (const k in at) e.setAttribute(k, at[k]);
  if (text !== undefined) e.textContent = text;
  return e;
};
const time = ns => {
  const a = Math.abs(ns), u = a >= 1e9 ? [1e9, 's'] : a >= 1e6 ? [1e6, 'ms'] : a >= 1e3 ? [1e3, 'µs'] : [1, 'ns'];
  return `${ns === 0 ? 0 : +(ns / u[0]).toPrecision(3)}\u202f${u[1]}`;
};
document.querySelectorAll('.strip').forEach(figure => {
  const data = JSON.parse(figure.querySelector('.strip-data').textContent), box = figure.querySelector('.lanes'), said = figure.querySelector('.said');
  const whole = Math.max(1, data.window[1]);
  let from = 0, to = whole, hits = [];
  const longest = gap => { let best = -1; for (let i = 0; i < gap.length; i += 4) if (best < 0 || gap[i + 1] > gap[best + 1]) best = i; return best; };
  function draw() {
    const width = Math.max(300, Math.floor(box.clientWidth)), wide = width - LABEL, scale = wide / (to - from);
    const high = data.lanes.length * ROW + AXIS, svg = make('svg', { viewBox: `0 0 ${width} ${high}`, height: high, 'aria-hidden': 'true' });
    const step = [1, 2, 5, 10].map(m => m * 10 ** Math.floor(Math.log10((to - from) / 6))).find(s => (to - from) / s <= 8) || to - from;
    for (let t = Math.ceil(from / step) * step; t <= to; t += step) {
      const x = LABEL + (t - from) * scale;
      svg.append(make('line', { class: 'axis', x1: x, x2: x, y1: 0, y2: high - AXIS + 4 }), make('text', { x: Math.min(x, width - 30), y: high - 6, 'text-anchor': x > width - 40 ? 'end' : 'middle' }, time(t)));
    }
    hits = [];
    let drawn = 0;
    data.lanes.forEach((lane, row) => {
      const y = row * ROW, v = lane.items, far = lane.kind === 'gap' ? longest(v) : -1;
      svg.append(make('text', { x: 0, y: y + 14 }, lane.name), make('line', { class: 'rule', x1: 0, x2: width, y1: y + ROW - 0.5, y2: y + ROW - 0.5 }));
      let open = null;
      const flush = () => {
        if (!open || drawn >= MOST) return;
        drawn++;
        const x = LABEL + Math.max(0, (open.s - from) * scale), w = Math.max(0.75, LABEL + Math.min(wide, (open.e - from) * scale) - x);
        svg.append(make('rect', { class: lane.kind, x, y: y + 3, width: w, height: ROW - 7 }));
        hits.push([row, x, x + w, open]);
        const name = open.n === 1 ? data.names[open.i] : `${open.n.toLocaleString('en')} ×`;
        if (open.far) svg.append(make('text', { class: 'longest', x: x + w / 2, y: y + 14, 'text-anchor': 'middle' }, w > 110 ? `longest gap ${time(open.e - open.s)}` : w > 50 ? time(open.e - open.s) : ''));
        else if (w > 48 && lane.kind !== 'gap') svg.append(make('text', { class: lane.kind === 'range' || lane.kind === 'wait' ? '' : 'in', x: x + 4, y: y + 14 }, name.length * 6.9 > w - 8 ? name.slice(0, Math.floor((w - 8) / 6.9) - 1) + '…' : name));
      };
      for (let i = 0; i < v.length; i += 4) {
        const s = v[i], e = s + v[i + 1];
        if (e < from || s > to) continue;
        if (open && i !== far && !open.far && (s - open.e) * scale < 0.5 && (e - s) * scale < 1 && (open.e - open.s) * scale < 1.5) {
          if (e - s > open.l) { open.l = e - s; open.i = v[i + 2]; }
          open.e = Math.max(open.e, e); open.n += v[i + 3];
        } else { flush(); open = { s, e, l: e - s, i: v[i + 2], n: v[i + 3], far: i === far }; }
      }
      flush();
    });
    box.replaceChildren(svg);
    box.dataset.drawn = drawn;
    tell(`${time(from)} to ${time(to)} of ${time(whole)}`);
  }
  const tell = text => { if (said) said.textContent = text; };
  function show(a, b) {
    const least = Math.min(whole, 50), length = Math.min(whole, Math.max(least, b - a));
    from = Math.max(0, Math.min(a, whole - length)); to = from + length;
    draw();
  }
  const zoom = (f, at) => { const c = at === undefined ? (from + to) / 2 : at; show(c - (c - from) * f, c + (to - c) * f); };
  const move = part => show(from + (to - from) * part, to + (to - from) * part);
  const acts = { in: () => zoom(0.5), out: () => zoom(2), left: () => move(-0.4), right: () => move(0.4), all: () => show(0, whole) };
  figure.addEventListener('click', e => { const b = e.target.closest('[data-zoom]'); if (b) acts[b.dataset.zoom](); });
  box.addEventListener('keydown', e => {
    const act = { ArrowLeft: 'left', ArrowRight: 'right', '+': 'in', '=': 'in', '-': 'out', Home: 'all' }[e.key];
    if (act) { e.preventDefault(); acts[act](); }
  });
  const at = e => from + (e.clientX - box.getBoundingClientRect().left - LABEL) / (box.clientWidth - LABEL) * (to - from);
  box.addEventListener('wheel', e => { if (e.ctrlKey) { e.preventDefault(); zoom(e.deltaY > 0 ? 1.25 : 0.8, at(e)); } }, { passive: false });
  let grip = null;
  box.addEventListener('pointerdown', e => { grip = [e.clientX, from, to]; box.setPointerCapture(e.pointerId); });
  box.addEventListener('pointerup', () => { grip = null; });
  box.addEventListener('pointermove', e => {
    if (grip) { const d = (grip[0] - e.clientX) / (box.clientWidth - LABEL) * (grip[2] - grip[1]); show(grip[1] + d, grip[2] + d); return; }
    const r = box.getBoundingClientRect(), x = e.clientX - r.left, row = Math.floor((e.clientY - r.top) / ROW);
    const hit = hits.find(h => h[0] === row && x >= h[1] - 1 && x <= h[2] + 1);
    if (!hit) return;
    const o = hit[3], many = o.n === 1 ? '' : ` and ${(o.n - 1).toLocaleString('en')} more`;
    tell(`${data.lanes[row].name}: ${data.names[o.i]}${many}, ${time(o.e - o.s)}, at ${time(o.s)}`);
  });
  let later = 0;
  addEventListener('resize', () => { clearTimeout(later); later = setTimeout(draw, 120); });
  addEventListener('beforeprint', draw);
  document.addEventListener('toggle', e => { if (e.target.open) draw(); }, true);
  draw();
});
})();
