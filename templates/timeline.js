(() => {
'use strict';
// The strip: SVG lanes of one window; what is narrower than a pixel is drawn together with its neighbours.
const SVG = 'http://www.w3.org/2000/svg', LABEL = 112, ROW = 20, BAR = 13, AXIS = 22, MOST = 4000;
const make = (name, at, text) => {
  const e = document.createElementNS(SVG, name);
  for (const k in at) e.setAttribute(k, at[k]);
  if (text !== undefined) e.textContent = text;
  return e;
};
// Three digits, or as many as tell times apart that lie a step from each other.
const time = (ns, step) => {
  const a = Math.abs(ns), u = a >= 1e9 ? [1e9, 's'] : a >= 1e6 ? [1e6, 'ms'] : a >= 1e3 ? [1e3, 'µs'] : [1, 'ns'];
  const digits = step ? Math.min(15, Math.max(3, Math.ceil(Math.log10(Math.max(1, a / step))) + 1)) : 3;
  return `${ns === 0 ? 0 : +(ns / u[0]).toPrecision(digits)}\u202f${u[1]}`;
};
const fit = (text, w) => text.length * 6.9 > w ? text.slice(0, Math.max(1, Math.floor(w / 6.9) - 1)) + '…' : text;
document.querySelectorAll('.strip').forEach(figure => {
  const data = JSON.parse(figure.querySelector('.strip-data').textContent), box = figure.querySelector('.lanes'), said = figure.querySelector('.said');
  const whole = Math.max(1, data.window[1]), part = data.detail, far = data.longest, own = new Set(data.own);
  let from = 0, to = whole, hits = [];
  const inside = () => part && from >= part.window[0] - 1 && to <= part.window[0] + part.window[1] + 1;
  function draw() {
    const width = Math.max(300, Math.floor(box.clientWidth)), wide = width - LABEL, scale = wide / (to - from);
    const lanes = inside() ? part.lanes : data.lanes, high = lanes.length * ROW + AXIS;
    const svg = make('svg', { viewBox: `0 0 ${width} ${high}`, height: high, 'aria-hidden': 'true' });
    const step = [1, 2, 5, 10].map(m => m * 10 ** Math.floor(Math.log10((to - from) / 6))).find(s => (to - from) / s <= 8) || to - from;
    for (let t = Math.ceil(from / step) * step; t <= to; t += step) {
      const x = LABEL + (t - from) * scale;
      svg.append(make('line', { class: 'axis', x1: x, x2: x, y1: 0, y2: high - AXIS + 4 }), make('text', { x: Math.min(x, width - 4), y: high - 6, 'text-anchor': x > width - 40 ? 'end' : 'middle' }, time(t, step)));
    }
    hits = [];
    let drawn = 0;
    lanes.forEach((lane, row) => {
      const y = row * ROW, v = lane.items;
      svg.append(make('text', { x: 0, y: y + 14 }, lane.name), make('line', { class: 'rule', x1: 0, x2: width, y1: y + ROW - 0.5, y2: y + ROW - 0.5 }));
      let open = null;
      const flush = () => {
        if (!open || drawn >= MOST) return;
        drawn++;
        const x = LABEL + Math.max(0, (open.s - from) * scale), w = Math.max(0.75, LABEL + Math.min(wide, (open.e - from) * scale) - x);
        const mine = lane.kind === 'kernel' && open.n === 1 && own.has(open.i);
        const h = open.n === 1 ? BAR : Math.max(2, BAR * Math.min(1, open.b / Math.max(1, open.e - open.s)));
        svg.append(make('rect', { class: lane.kind + (open.n > 1 ? ' many' : mine ? ' own' : ''), x, y: y + 3 + BAR - h, width: w, height: h }));
        hits.push([row, x, x + w, open]);
        const name = open.n === 1 ? data.names[open.i] : `${open.n.toLocaleString('en')} ×`;
        if (w > 48 && lane.kind !== 'gap' && h > 11) svg.append(make('text', { class: mine ? 'onown' : { range: '', kernel: 'dark', wait: 'dark', memset: 'dark' }[lane.kind] ?? 'in', x: x + 4, y: y + 14 }, fit(name, w - 8)));
      };
      for (let i = 0; i < v.length; i += 5) {
        const s = v[i], l = v[i + 1], e = s + l;
        if (e < from || s > to) continue;
        if (open && (s - open.e) * scale < 0.5 && l * scale < 1 && (open.e - open.s) * scale < 1.5) {
          if (l > open.l) { open.l = l; open.i = v[i + 2]; }
          open.e = Math.max(open.e, e); open.n += v[i + 3]; open.b += v[i + 4];
        } else { flush(); open = { s, e, l, i: v[i + 2], n: v[i + 3], b: v[i + 4] }; }
      }
      flush();
      if (lane.kind === 'gap' && far && far[0] < to && far[0] + far[1] > from) {
        const x = LABEL + Math.max(0, (far[0] - from) * scale), w = Math.min(wide, (far[0] + far[1] - from) * scale) + LABEL - x, label = `longest gap ${time(far[1])}`;
        svg.append(make('rect', { class: 'far', x, y: y + 3, width: Math.max(1, w), height: BAR }));
        const room = w > 110, at = room ? x + w / 2 : x > width / 2 ? x - 4 : x + w + 4;
        const words = make('text', { class: 'longest', x: at, y: y + 14, 'text-anchor': room ? 'middle' : x > width / 2 ? 'end' : 'start' }, label);
        svg.append(words);
      }
    });
    if (part && !inside()) {
      const x = LABEL + (part.window[0] - from) * scale, w = part.window[1] * scale;
      if (x + w > LABEL && x < width) svg.append(make('rect', { class: 'part', x: Math.max(LABEL, x - 1), y: 0, width: Math.max(2, w), height: high - AXIS }));
    }
    box.replaceChildren(svg);
    box.dataset.drawn = drawn;
    tell(`${time(from, step)} to ${time(to, step)} of ${time(whole)}`);
  }
  const tell = text => { if (said) said.textContent = text; };
  function show(a, b) {
    const least = Math.min(whole, 50), length = Math.min(whole, Math.max(least, b - a));
    from = Math.max(0, Math.min(a, whole - length)); to = from + length;
    draw();
  }
  const zoom = (f, at) => { const c = at === undefined ? (from + to) / 2 : at; show(c - (c - from) * f, c + (to - c) * f); };
  const move = share => show(from + (to - from) * share, to + (to - from) * share);
  const acts = { in: () => zoom(0.5), out: () => zoom(2), left: () => move(-0.4), right: () => move(0.4), all: () => show(0, whole), part: () => show(part.window[0], part.window[0] + part.window[1]) };
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
    const o = hit[3], lane = (inside() ? part.lanes : data.lanes)[row].name;
    tell(o.n === 1 ? `${lane}: ${data.names[o.i]}, ${time(o.e - o.s)}, at ${time(o.s)}` : `${lane}: ${o.n.toLocaleString('en')} in ${time(o.e - o.s)}, filling ${time(o.b)}, at ${time(o.s)}, the longest is ${data.names[o.i]}`);
  });
  let later = 0;
  addEventListener('resize', () => { clearTimeout(later); later = setTimeout(draw, 120); });
  addEventListener('beforeprint', draw);
  document.addEventListener('toggle', e => { if (e.target.open) draw(); }, true);
  draw();
});
})();
