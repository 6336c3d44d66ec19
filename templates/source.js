// Source lines and SASS side by side: only the rows in sight are in the page, each list marks what belongs together in the other.
(() => {
'use strict';
const esc = s => String(s).replace(/[&<>"']/g, c => `&#${c.charCodeAt(0)};`);
const THIN = '\u202f', ROW = 20, SPARE = 12, HOT = 1, AROUND = 2, LEAST = 30, MOST = 56, CHAR = 7.6, REASON = 184;
const short = n => {
  if (n < 1e5) return Number.isInteger(n) ? n.toLocaleString('en-US') : n.toPrecision(3);
  let e = Math.min(6, Math.floor(Math.log10(n) / 3));
  if (Number((n / 1000 ** e).toPrecision(3)) >= 1000 && e < 6) e++;
  return `${Number(n / 1000 ** e).toPrecision(3)}${THIN}${' kMGTPE'[e]}`;
};
const percent = p => (p === 0 ? `0${THIN}%` : p < 0.05 ? `< 0.1${THIN}%` : `${p.toFixed(1)}${THIN}%`);
const plural = (n, noun) => `${n.toLocaleString('en-US')} ${noun}${n === 1 ? '' : 's'}`;

// One list: a scrolled table of equally high rows.
class Pane {
  constructor(id, title, first, what, model, columns, onPick, onJump) {
    Object.assign(this, { id, model, columns, onPick, onJump, marked: new Set(), cause: -1, cur: -1, order: 'at', down: false, shown: [] });
    this.el = document.createElement('div');
    const several = model.files.length > 1, tail = model.tail ? (several ? 124 : 56) : 0, at = first === 'Line' && several ? 124 : 60;
    const head = (key, label, cls, width) => `<th scope="col" class="${cls}" style="width:${width}px" aria-sort="none"><button type="button" data-key="${key}">${esc(label)}</button></th>`;
    const widths = columns.map(([, label]) => Math.max(62, 8 * Math.max(...label.split(' ').map(w => w.length)) + 14));
    this.chars = Math.min(MOST, model.texts.reduce((a, text) => Math.max(a, text ? text.length : 0), LEAST));
    const sampled = model.weight !== 'inst', body = Math.ceil(this.chars * CHAR) + 12, wide = at + 76 + (sampled ? 82 + REASON : 0) + body + widths.reduce((a, b) => a + b, 0) + tail;
    this.el.innerHTML = `<div class="ctl"><h3>${esc(title)}</h3><span class="count" aria-live="polite"></span>`
      + `<label>Filter <input type="search" placeholder="part of a line"></label>`
      + `<label class="hotonly"><input type="checkbox"> only 1${THIN}% and more</label></div>`
      + `<div class="code"><table role="grid" tabindex="0" aria-label="${esc(title)}" style="min-width:${wide}px"><thead><tr>`
      + head('at', first, 'n', at) + head('w', model.weight === 'inst' ? 'Share' : 'Samples', 'n', 76)
      + (sampled ? '<th scope="col" style="width:82px"><span class="sr">By category</span></th>' : '')
      + `<th scope="col" style="width:${body}px">${esc(what)}</th>${sampled ? '<th scope="col" style="width:${REASON}px">First reason</th>' : ''}`
      + columns.map(([key, label], i) => head(key, label, 'n', widths[i])).join('')
      + (tail ? `<th scope="col" class="n" style="width:${tail}px">Line</th>` : '') + '</tr></thead><tbody></tbody></table></div>';
    this.sampled = sampled;
    this.span = (sampled ? 5 : 3) + columns.length + (tail ? 1 : 0);
    this.box = this.el.querySelector('.code');
    this.table = this.el.querySelector('table');
    this.body = this.el.querySelector('tbody');
    this.text = this.el.querySelector('input[type=search]');
    this.hot = this.el.querySelector('input[type=checkbox]');
    this.box.addEventListener('scroll', () => { cancelAnimationFrame(this.frame); this.frame = requestAnimationFrame(() => this.draw()); });
    this.text.addEventListener('input', () => this.list());
    this.hot.addEventListener('change', () => this.list());
    this.el.querySelector('thead').addEventListener('click', e => { const b = e.target.closest('[data-key]'); if (b) this.sort(b.dataset.key); });
    this.body.addEventListener('click', e => {
      const tr = e.target.closest('tr[data-i]');
      if (!tr) return;
      this.table.focus({ preventScroll: true });
      this.pick(+tr.dataset.i);
    });
    this.table.addEventListener('keydown', e => this.key(e));
  }

  sort(key) {
    if (key === this.order) this.down = !this.down; else { this.order = key; this.down = key !== 'at'; }
    this.list();
    this.box.scrollTop = 0;
  }

  // What is listed, in which order: `shown` are positions in the model, negative for headings.
  list(keep) {
    const m = this.model, q = this.text.value.trim().toLowerCase(), hot = this.hot.checked, flat = this.order !== 'at' || q;
    let found = [];
    m.groups.forEach((group, g) => {
      const rows = group.items.filter(i => !q || m.find(i).includes(q));
      const near = hot && !flat && m.around ? this.near(group.items) : null;
      const kept = rows.filter(i => (near ? near.has(i) : (!hot || m.share(i) >= HOT) && (this.order === 'at' || m.w[i] !== null)));
      if (!flat && group.name && kept.length) found.push(-1 - g);
      found = found.concat(kept);
    });
    if (this.order !== 'at') {
      const key = this.order === 'w' ? m.w : m.costs[this.order], s = this.down ? -1 : 1;
      const value = this.order === 'threads' ? i => (m.costs.instructions[i] ? key[i] / m.costs.instructions[i] : -1) : i => key[i] || 0;
      found.sort((a, b) => s * (value(a) - value(b)) || a - b);
    } else if (this.down) found.reverse();
    this.shown = found;
    this.el.querySelectorAll('th[aria-sort]').forEach(th => th.setAttribute('aria-sort', th.firstChild.dataset.key === this.order ? (this.down ? 'descending' : 'ascending') : 'none'));
    const n = found.filter(i => i >= 0 && m.w[i] !== null).length;
    this.el.querySelector('.count').textContent = `${n.toLocaleString('en-US')} of ${plural(m.total, m.noun)}`;
    this.table.setAttribute('aria-rowcount', found.length + 1);
    this.at = new Map(found.map((i, k) => [i, k]));
    if (keep !== false) this.draw(true);
  }

  near(items) {
    const near = new Set();
    items.forEach((i, k) => { if (this.model.share(i) >= HOT) for (let j = Math.max(0, k - AROUND); j <= Math.min(items.length - 1, k + AROUND); j++) near.add(items[j]); });
    return near;
  }

  draw(force) {
    const n = this.shown.length, high = this.box.clientHeight || 430;
    const from = Math.max(0, Math.min(n - 1, Math.floor(this.box.scrollTop / ROW)) - SPARE), to = Math.min(n, from + Math.ceil(high / ROW) + 2 * SPARE);
    if (!force && from === this.from && to === this.to) return;
    this.from = from; this.to = to;
    const pad = k => (k ? `<tr aria-hidden="true"><td colspan="${this.span}" style="height:${k * ROW}px;padding:0"></td></tr>` : '');
    let h = pad(from);
    for (let k = from; k < to; k++) h += this.row(this.shown[k], k);
    this.body.innerHTML = n ? h + pad(n - to) : `<tr class="none"><td colspan="${this.span}">Nothing matches.</td></tr>`;
    const cur = this.at.get(this.cur);
    if (cur >= from && cur < to) this.table.setAttribute('aria-activedescendant', `${this.id}-${this.cur}`);
    else this.table.removeAttribute('aria-activedescendant');
  }

  row(i, k) {
    const m = this.model;
    if (i < 0) { const g = m.groups[-1 - i]; return `<tr class="file" aria-rowindex="${k + 2}"><td colspan="${this.span}">${esc(g.name)} <small>${esc(g.note)}</small></td></tr>`; }
    const share = m.share(i), counted = m.w[i] !== null, cls = ['r'];
    if (share >= 20) cls.push('warm2'); else if (share >= 3) cls.push('warm');
    if (this.marked.has(i)) cls.push('on');
    if (this.cur === i) cls.push('cur');
    if (this.cause === i) cls.push('cause');
    if (this.order === 'at' && k && m.gap(this.shown[k - 1], i)) cls.push('cut');
    const bar = counted ? m.bar(i).map(([c, w]) => `<i class="c-${c}" style="width:${w.toFixed(2)}%"></i>`).join('') : '';
    const numbers = this.columns.map(([key]) => {
      const n = counted ? m.costs[key][i] : 0;
      if (key === 'threads') return `<td class="n">${counted && m.costs.instructions[i] ? short(n / m.costs.instructions[i]) : ''}</td>`;
      return `<td class="n">${n ? short(n) : ''}</td>`;
    }).join('');
    const flat = this.order !== 'at' || this.text.value.trim();
    return `<tr id="${this.id}-${i}" class="${cls.join(' ')}" data-i="${i}" aria-rowindex="${k + 2}" aria-selected="${this.cur === i}"><td class="at">${m.label(i, flat)}</td>`
      + `<td class="n">${counted && m.w[i] ? percent(share) : ''}</td>${this.sampled ? `<td>${bar ? `<span class="mini" aria-hidden="true">${bar}</span>` : ''}</td>` : ''}`
      + `<td class="src"${(m.texts[i] || '').length > this.chars ? ` title="${esc(m.texts[i])}"` : ''}>${m.html(i)}</td>${this.sampled ? `<td class="why">${counted ? esc(m.reason(i)) : ''}</td>` : ''}${numbers}${m.tail ? `<td class="at">${m.tail(i)}</td>` : ''}</tr>`;
  }

  // Mark rows, and bring one into sight: what hides it is undone.
  mark(rows, into, cause = -1) {
    this.marked = new Set(rows); this.cause = cause;
    if (into !== undefined) { this.reveal(into); this.into(into); }
    this.draw(true);
  }
  reveal(i) {
    if (this.at.has(i)) return;
    this.text.value = ''; this.hot.checked = false;
    this.list(false);
  }
  into(i) {
    const top = this.at.get(i) * ROW, high = this.box.clientHeight - 60;
    if (top < this.box.scrollTop || top > this.box.scrollTop + high - ROW) this.box.scrollTop = Math.max(0, top - high / 3);
  }
  pick(i) { this.cur = i; this.cause = -1; this.marked = new Set(); this.onPick(i); this.into(i); this.draw(true); }
  clear() { this.cur = -1; this.cause = -1; this.marked = new Set(); this.draw(true); }

  key(e) {
    if (e.target !== this.table || e.ctrlKey || e.metaKey || e.altKey) return;
    const page = Math.max(1, Math.floor((this.box.clientHeight - 60) / ROW)), last = this.shown.length - 1;
    const at = this.at.has(this.cur) ? this.at.get(this.cur) : -1;
    const to = { ArrowDown: at + 1, ArrowUp: at - 1, PageDown: at + page, PageUp: at - page, Home: 0, End: last }[e.key];
    if (to !== undefined && last >= 0) {
      let k = Math.max(0, Math.min(last, to));
      const step = to > at || k === 0 ? 1 : -1;
      while (this.shown[k] < 0 && k + step >= 0 && k + step <= last) k += step;
      e.preventDefault();
      if (this.shown[k] >= 0) this.pick(this.shown[k]);
    } else if (e.key === 'Enter' || e.key === ' ') { e.preventDefault(); this.onJump(); }
    else if (e.key === 'Escape') this.onPick(-1);
  }
}

function build(section, n) {
  const raw = JSON.parse(section.querySelector('.srcdata').textContent), s = ncukit.source(raw), R = s.rows, N = R.sass.length;
  const states = Object.keys(s.stalls), weight = (raw.weight === 'inst' ? R.instructions : s.basis === 'waiting' ? R.waiting : R.samples) || new Array(N).fill(0);
  const total = weight.reduce((a, b) => a + b, 0), columns = raw.columns;
  const order = Object.keys(raw.names);
  const share = w => i => (total && w[i] ? 100 * w[i] / total : 0);
  const summary = stalls => i => { // first reason of one row or line
    let best = '', most = 0, all = 0;
    states.forEach(k => { const x = stalls[k][i]; all += x; if (x > most) { most = x; best = k; } });
    return most ? `${best} ${Math.round(100 * most / all)}${THIN}%` : '';
  };
  const barOf = (stalls, w) => {
    const top = w.reduce((a, b) => (b > a ? b : a), 0) || 1;
    return i => {
      const by = {};
      states.forEach(k => { const c = s.categories[k]; by[c] = (by[c] || 0) + stalls[k][i]; });
      return order.filter(c => by[c]).map(c => [c, 100 * by[c] / top]);
    };
  };
  const lined = s.files.length > 0, several = s.files.length > 1, hex = i => R.offset[i].toString(16).padStart(4, '0');
  // A place in few characters: the name is cut, never the number.
  const fit = (name, number) => {
    const room = 14 - String(number).length, base = name.replace(/^.*[\\/]/, '');
    return `<span title="${esc(`${name}:${number}`)}">${esc(base.length > room ? `${base.slice(0, room - 1)}…` : base)}:${number}</span>`;
  };
  const place = i => (R.file[i] === null ? '' : `${s.files[R.file[i]].name}:${R.line[i]}`);

  const sass = {
    weight: raw.weight, files: s.files, w: weight, share: share(weight), costs: R, total: N, noun: 'instruction', label: hex,
    texts: R.sass, find: i => `${R.sass[i]} ${place(i)} ${hex(i)}`.toLowerCase(), html: i => esc(R.sass[i]) || '<span class="lost">text not in the report</span>',
    reason: summary(s.stalls), bar: barOf(s.stalls, weight), gap: () => false, tail: lined ? i => (R.file[i] === null ? '' : several ? fit(s.files[R.file[i]].name, R.line[i]) : R.line[i]) : null,
    groups: s.functions.map(f => ({ name: s.functions.length > 1 ? f.name : '', note: plural(f.last - f.first + 1, 'instruction'), items: Array.from({ length: f.last - f.first + 1 }, (_, k) => f.first + k) })),
  };

  // Lines: the sum of their instructions, wherever they were inlined.
  const L = { file: [], number: [], text: [], rows: [], w: [], costs: {}, stalls: {} }, index = new Map();
  s.files.forEach((f, k) => f.lines.forEach((number, j) => {
    index.set(`${k}:${number}`, L.number.length);
    L.file.push(k); L.number.push(number); L.text.push(f.texts[j]); L.rows.push([]);
  }));
  const lineOf = R.file.map((f, i) => { const l = f === null ? undefined : index.get(`${f}:${R.line[i]}`); if (l !== undefined) L.rows[l].push(i); return l === undefined ? -1 : l; });
  const sums = column => L.rows.map(rows => rows.reduce((a, i) => a + column[i], 0));
  L.w = sums(weight).map((x, i) => (L.rows[i].length ? x : null));
  ['instructions', ...columns.map(c => c[0])].forEach(c => { if (R[c]) L.costs[c] = sums(R[c]); });
  states.forEach(k => { L.stalls[k] = sums(s.stalls[k]); });
  const lineShare = share(L.w);
  const where = i => `${s.files[L.file[i]].name}:${L.number[i]}`;
  const files = s.files.map((f, k) => {
    const items = f.lines.map(x => index.get(`${k}:${x}`)), sum = items.reduce((a, i) => a + (L.w[i] || 0), 0);
    return { name: several ? f.name : '', note: `${total ? percent(100 * sum / total) : ''} ${raw.status[f.status]}${f.generated ? `, written by ${f.generated}` : ''}`, items, sum };
  }).sort((a, b) => b.sum - a.sum);
  const lines = {
    weight: raw.weight, files: s.files, w: L.w, share: lineShare, costs: L.costs, total: L.rows.filter(r => r.length).length, noun: 'line', around: true, groups: files, tail: null,
    texts: L.text, label: (i, flat) => (several && flat ? fit(s.files[L.file[i]].name, L.number[i]) : L.number[i]), find: i => `${L.text[i] || ''} ${where(i)}`.toLowerCase(),
    html: i => (L.text[i] !== null ? esc(L.text[i]) : `<span class="lost">${L.rows[i].length ? `source not found; hottest: ${esc(R.sass[hottest(L.rows[i])])}` : ''}</span>`),
    reason: summary(L.stalls), bar: barOf(L.stalls, L.w.map(x => x || 0)),
    gap: (a, b) => a >= 0 && b >= 0 && L.number[b] !== L.number[a] + 1,
  };
  function hottest(rows) { return rows.reduce((a, i) => (weight[i] > weight[a] ? i : a), rows[0]); }

  const panes = section.querySelector('.panes'), said = document.createElement('p');
  said.className = 'picked'; said.setAttribute('aria-live', 'polite');
  const KEYS = 'Keys: arrows, Page, Home, End'; const HELP = lined ? `Pick a line to mark its instructions, or an instruction to mark its line. ${KEYS}; Enter goes to the other list.` : raw.weight === 'inst' ? `${KEYS}.` : `Pick an instruction to see what it waits for. ${KEYS}; Enter goes to that one.`;
  said.textContent = HELP;
  const numbers = (costs, i) => columns.filter(([k]) => costs[k] && costs[k][i]).map(([k, label]) => (k === 'threads' ? `${short(costs[k][i] / costs.instructions[i])} of 32 threads` : `${label.toLowerCase()} ${costs[k][i].toLocaleString('en-US')}`));
  const reasons = (stalls, i) => states.filter(k => stalls[k][i]).sort((a, b) => stalls[b][i] - stalls[a][i]).slice(0, 4).map(k => `${k} ${short(stalls[k][i])}`);
  const tell = (title, text, w, stalls, costs, i, more) => {
    const parts = [total && w[i] ? `${percent(100 * w[i] / total)} (${short(w[i])} ${raw.weight === 'inst' ? 'executed' : w[i] === 1 ? 'sample' : 'samples'})` : 'no samples', ...reasons(stalls, i), ...numbers(costs, i), ...more];
    said.innerHTML = `<b>${esc(title)}</b> ${text ? `<code>${esc(text)}</code> ` : ''}${esc(parts.join(' · '))}`;
  };
  let left = null, right = null;
  const clear = () => { said.textContent = HELP; [left, right].forEach(p => p && p.clear()); };
  function pickLine(i) {
    if (i < 0) return clear();
    const rows = L.rows[i];
    right.cur = -1;
    right.mark(rows, rows.length ? hottest(rows) : undefined);
    if (rows.length) tell(where(i), (L.text[i] || '').trim(), L.w, L.stalls, L.costs, i, [plural(rows.length, 'instruction')]);
    else said.innerHTML = `<b>${esc(where(i))}</b> no instruction belongs to this line`;
  }
  function pickRow(i) {
    if (i < 0) return clear();
    const p = R.producer[i], l = lineOf[i];
    right.cause = p === null ? -1 : p;
    if (left) { left.cur = -1; left.mark(l < 0 ? [] : [l], l < 0 ? undefined : l); }
    tell(`+0x${R.offset[i].toString(16)}`, R.sass[i], weight, s.stalls, R, i, [
      ...(p === null ? [] : [`waits for ${R.sass[p]} at +0x${R.offset[p].toString(16)}${place(p) && place(p) !== place(i) ? `, ${place(p)}` : ''}`]),
      ...(l < 0 ? [] : [place(i)]),
    ]);
  }
  const jump = (from, to) => () => {
    if (!to || from.cur < 0) return;
    const next = from === left ? (L.rows[from.cur].length ? hottest(L.rows[from.cur]) : -1) : lineOf[from.cur];
    if (next < 0) return;
    to.table.focus({ preventScroll: true });
    to.pick(next);
  };
  if (lined) left = new Pane(`${section.id}-l`, 'Source', 'Line', 'Source', lines, columns, pickLine, () => jump(left, right)());
  right = new Pane(`${section.id}-s`, 'SASS', 'Offset', 'Instruction', sass, columns, pickRow, () => {
    if (left) jump(right, left)();
    else if (right.cause >= 0) right.pick(right.cause);
  });
  [left, said, right].forEach(x => x && panes.append(x.el || x));
  panes.hidden = false;
  section.classList.add('live');
  if (left) { left.hot.checked = L.number.length > 40 && L.w.some((_, i) => lineShare(i) >= HOT); left.list(); }
  right.list();
  const top = weight.reduce((a, x, i) => (x > weight[a] ? i : a), 0);
  if (total) right.into(top);
  right.draw(true);

  // Places named by findings and evidence lead here.
  if (left) {
    const places = new Set(L.rows.map((rows, i) => (rows.length ? where(i) : '')));
    (section.closest('.deep') || document).querySelectorAll('.finds code, .ev code').forEach(c => {
      if (!places.has(c.textContent) || c.closest('a')) return;
      const a = document.createElement('a');
      a.href = `#${section.id.replace('source', '')}line-${encodeURIComponent(c.textContent)}`;
      c.replaceWith(a); a.append(c);
    });
  }
  // #line-95, #line-a.cu:95
  const go = () => {
    const want = decodeURIComponent(location.hash.slice(1)).match(/^(kernel-\d+-)?line-(.+)$/);
    if (!left || !want || (want[1] && !section.id.startsWith(want[1])) || (!want[1] && n)) return;
    const i = L.number.findIndex((x, j) => L.rows[j].length && (String(x) === want[2] || where(j) === want[2]));
    if (i < 0) return;
    for (let p = section; p; p = p.parentElement) if (p.tagName === 'DETAILS') p.open = true;
    left.reveal(i); left.pick(i);
    section.scrollIntoView();
  };
  addEventListener('hashchange', go);
  go();
  new ResizeObserver(() => [left, right].forEach(p => p && p.draw())).observe(panes);
}

document.addEventListener('DOMContentLoaded', () => {
  document.querySelectorAll('section.source').forEach((section, n) => { if (section.querySelector('.srcdata')) build(section, n); });
});
})();
