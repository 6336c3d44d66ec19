// The page's data: columns unpacked, and written as JSON or CSV when asked for.
const ncukit = (() => {
'use strict';
// [value, how often, ...] and [distance, value, ...] of what is not zero, as ncukit/render/by_instruction.py packs.
const runs = a => { const out = []; for (let i = 0; i < a.length; i += 2) for (let k = 0; k < a[i + 1]; k++) out.push(a[i]); return out; };
const gaps = (a, n) => { const out = new Array(n).fill(0); for (let i = 0, at = -1; i < a.length; i += 2) { at += a[i]; out[at] = a[i + 1]; } return out; };
const mapped = (o, f) => Object.fromEntries(Object.entries(o).map(([k, v]) => [k, f(v)]));

function source(d) {
  const n = d.count, r = mapped(d.runs, runs), g = mapped(d.gaps, a => gaps(a, n)), offset = [];
  r.step.forEach((s, i) => offset.push(s ? offset[i - 1] + s : 0));
  const { producer, ...costs } = g;
  return {
    basis: d.basis, categories: d.categories, functions: d.functions, files: d.files, notes: d.notes,
    rows: {
      function: r.function, offset, sass: d.sass, file: r.file.map(f => (f < 0 ? null : f)), line: r.line.map(l => l || null),
      producer: producer.map(p => (p ? p - 1 : null)), ...costs,
    },
    stalls: mapped(d.stalls, a => gaps(a, n)),
  };
}

function document_() {
  const d = JSON.parse(document.getElementById('data').textContent), W = d.words, head = mapped(d.head, runs);
  const columns = d.metrics.map(([id, unit, values, evidence]) => [id, unit, runs(values), runs(evidence)]);
  const islands = [...document.querySelectorAll('script.srcdata')];
  return {
    schema: 'ncukit.kernel/1', file: d.file,
    kernels: runs(d.diagnoses).map((diagnosis, i) => {
      const kernel = mapped(head, column => W[column[i]]);
      kernel.metrics = Object.fromEntries(columns.map(([id, unit, values, evidence]) => {
        const [quality, sources, reason, status] = W[evidence[i]];
        return [id, { value: values[i], unit, quality, sources, reason, status }];
      }));
      Object.assign(kernel, W[diagnosis]);
      const island = islands.find(s => s.closest('section').id === `kernel-${kernel.index + 1}-source`);
      if (island) kernel.source = source(JSON.parse(island.textContent));
      return kernel;
    }),
  };
}

// A cell that a spreadsheet would take for a formula is quoted with an apostrophe; numbers are left alone.
function cell(x) {
  if (x === null || x === undefined) return '';
  if (typeof x !== 'string') return String(x);
  const s = /^[\s]*[=+\-@]|^[\t\r]/.test(x) ? `'${x}` : x;
  return /[",\r\n]/.test(s) ? `"${s.replace(/"/g, '""')}"` : s;
}
const csv = rows => rows.map(r => r.map(cell).join(',')).join('\r\n') + '\r\n';

function metrics(doc) {
  const rows = [['launch', 'kernel', 'metric', 'value', 'unit', 'quality', 'raw_counters', 'reason']];
  doc.kernels.forEach(k => Object.entries(k.metrics).forEach(([id, v]) =>
    rows.push([k.index + 1, k.demangled, id, v.value, v.unit, v.quality, v.sources.join(' '), v.reason])));
  return rows;
}

const weights = s => s.rows.waiting || s.rows.samples || s.rows.instructions.map(() => 0);
const COSTS = ['waiting', 'samples', 'instructions', 'threads', 'sectors', 'excess_sectors', 'wavefronts', 'excess_wavefronts', 'local_sectors', 'spills', 'divergent'];
const costsOf = s => COSTS.filter(c => s.rows[c]);
const percent = (n, all) => (all ? 100 * n / all : null);

function sass(doc) {
  const kernels = doc.kernels.filter(k => k.source), of = f => [...new Set(kernels.flatMap(k => f(k.source)))];
  const costs = of(costsOf), states = of(s => Object.keys(s.stalls));
  const rows = [['launch', 'function', 'offset', 'file', 'line', 'share_pct', ...costs, ...states.map(s => `stall_${s}`), 'waits_for_offset', 'sass']];
  kernels.forEach(k => {
    const s = k.source, r = s.rows, w = s.basis === 'none' ? null : weights(s), all = w && w.reduce((a, b) => a + b, 0);
    r.sass.forEach((text, i) => rows.push([
      k.index + 1, s.functions[r.function[i]].name, r.offset[i], r.file[i] === null ? null : s.files[r.file[i]].name, r.line[i],
      w && percent(w[i], all), ...costs.map(c => (r[c] ? r[c][i] : null)), ...states.map(x => (s.stalls[x] ? s.stalls[x][i] : null)),
      r.producer[i] === null ? null : r.offset[r.producer[i]], text,
    ]));
  });
  return rows;
}

function lines(doc) {
  const kernels = doc.kernels.filter(k => k.source), of = f => [...new Set(kernels.flatMap(k => f(k.source)))];
  const costs = of(costsOf), states = of(s => Object.keys(s.stalls));
  const rows = [['launch', 'file', 'line', 'share_pct', 'instructions_in_sass', ...costs, ...states.map(s => `stall_${s}`), 'text']];
  kernels.forEach(k => {
    const s = k.source, r = s.rows, by = new Map(), w = s.basis === 'none' ? null : weights(s), all = w && w.reduce((a, b) => a + b, 0);
    r.file.forEach((f, i) => { if (f !== null) { const key = `${f}:${r.line[i]}`; if (!by.has(key)) by.set(key, []); by.get(key).push(i); } });
    const sum = (c, at) => (c ? at.reduce((n, i) => n + c[i], 0) : null);
    s.files.forEach((file, f) => file.lines.forEach((n, j) => {
      const at = by.get(`${f}:${n}`) || [];
      rows.push([
        k.index + 1, file.name, n, w && percent(sum(w, at), all), at.length, ...costs.map(c => sum(r[c], at)),
        ...states.map(x => sum(s.stalls[x], at)), file.texts[j],
      ]);
    }));
  });
  return rows;
}

function hotLines(doc) {
  const rows = [['launch', 'kernel', 'place', 'share_pct', 'amount', 'unit', 'first_reason', 'first_reason_pct', 'note', 'text']];
  doc.kernels.forEach(k => (k.hot_lines || []).forEach(h =>
    rows.push([k.index + 1, k.demangled, h.place, h.share, h.amount, h.unit, h.state, h.state_share, h.note, h.text])));
  return rows;
}

function save(name, type, text) {
  const url = URL.createObjectURL(new Blob([text], { type })), a = document.createElement('a');
  a.href = url; a.download = name; a.click();
  setTimeout(() => URL.revokeObjectURL(url), 10000);
}
const WRITERS = { metrics, lines, sass, hot: hotLines };
document.addEventListener('DOMContentLoaded', () => {
  const box = document.getElementById('download');
  if (!box) return;
  box.hidden = false;
  box.addEventListener('click', e => {
    const b = e.target.closest('[data-dl]');
    if (!b) return;
    const doc = document_(), what = b.dataset.dl, stem = doc.file.replace(/^.*[\\/]/, '').replace(/\.ncu-repz?$/, '') || 'report';
    if (what === 'json') save(`${stem}.json`, 'application/json', JSON.stringify(doc));
    else save(`${stem}-${what}.csv`, 'text/csv;charset=utf-8', csv(WRITERS[what](doc)));
    box.open = false;
    box.querySelector('summary').focus();
  });
  box.addEventListener('keydown', e => { if (e.key === 'Escape') { box.open = false; box.querySelector('summary').focus(); } });
  document.addEventListener('click', e => { if (!box.contains(e.target)) box.open = false; });
});

// Launches that are built when opened: their hot lines, once page.js has filled the fold.
let lazy = null;
document.addEventListener('toggle', e => setTimeout(() => {
  const fold = e.target, inner = fold.open && fold.dataset.i !== undefined && fold.querySelector('.in'), island = document.getElementById('rows');
  if (!inner || !island || inner.querySelector('.hotl')) return;
  lazy = lazy || JSON.parse(island.textContent);
  const hot = lazy.rows[fold.dataset.i][4], W = lazy.words, note = inner.querySelector('.note');
  if (!hot || !hot.length) return;
  const box = document.createElement('div');
  box.className = 'w hotw scroll';
  box.innerHTML = '<table class="hotl"><caption></caption><thead><tr><th scope="col">Line</th><th scope="col" class="n">Share</th><th scope="col">First reason</th><th scope="col">Source or SASS</th></tr></thead><tbody></tbody></table>';
  box.querySelector('caption').textContent = lazy.hot;
  hot.forEach(([place, share, reason, text, why]) => {
    const tr = box.querySelector('tbody').insertRow();
    [W[place], share, W[reason], W[text]].forEach((x, i) => { const td = tr.insertCell(); td.textContent = x; if (i === 1) td.className = 'n'; if (i === 3) td.className = 'src'; });
    if (W[why]) tr.lastChild.append(' ', Object.assign(document.createElement('small'), { textContent: W[why] }));
  });
  inner.insertBefore(box, note);
}), true);
return { source, csv };
})();
