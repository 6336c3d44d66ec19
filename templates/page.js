(() => {
'use strict';
const $ = (s, r) => (r || document).querySelector(s);
const $$ = (s, r) => [...(r || document).querySelectorAll(s)];
const root = document.documentElement;
const island = id => { const e = document.getElementById(id); return e ? JSON.parse(e.textContent) : null; };
const esc = s => String(s).replace(/[&<>"']/g, c => `&#${c.charCodeAt(0)};`);
const store = {
  get() { try { return localStorage.getItem('ncukit-theme'); } catch { return null; } },
  set(v) { try { localStorage.setItem('ncukit-theme', v); } catch { /* private mode */ } },
};

// Theme: follows the system until chosen.
const system = matchMedia('(prefers-color-scheme:dark)');
const themes = ['system', 'light', 'dark'];
const button = $('#theme');
let theme = themes.includes(store.get()) ? store.get() : 'system';
function applyTheme() {
  if (theme === 'system') delete root.dataset.theme; else root.dataset.theme = theme;
  if (button) button.textContent = `Theme: ${theme}`;
}
applyTheme();
if (button) button.addEventListener('click', () => {
  theme = themes[(themes.indexOf(theme) + 1) % 3];
  store.set(theme); applyTheme(); draw();
});
system.addEventListener('change', () => draw());
const ids = $('#ids');
if (ids) ids.addEventListener('click', () => {
  ids.setAttribute('aria-pressed', document.body.classList.toggle('ids'));
  $$('.fam .row').forEach(r => {
    const v = $('[data-t]', r);
    if (v && !$('.id', r)) $('.l', r).insertAdjacentHTML('beforeend', `<span class="id">${esc(v.dataset.t.replace(/^.*?\//, ''))}</span>`);
  });
});
const print = $('#print');
if (print) print.addEventListener('click', () => window.print());

// Launches that are built when opened: [sentence, evidence, values, note] per launch.
const lazy = island('rows');
function build(d) {
  const inner = $('.in', d), i = d.dataset.i;
  if (!lazy || i === undefined || inner.childElementCount) return;
  const [claim, evidence, values, note] = lazy.rows[i], W = lazy.words, n = d.id.slice(7);
  const prose = k => esc(W[k]).replace(/`([^`]*)`/g, '<code>$1</code>');
  const val = (key, [text, state]) => key
    ? `<span class="${{ derived: 'v fx', estimate: 'v est', missing: 'nc', absent: 'nc' }[state] || 'v'}" data-t="${esc(key)}">${esc(text)}</span>` : esc(text);
  let h = `<p class="w">${prose(claim)}</p>`;
  if (evidence.length) h += `<ul class="ev w">${evidence.map(e => `<li><span class="n">${val(e[2], e)}</span><span>${prose(e[3])}</span></li>`).join('')}</ul>`;
  let at = 0;
  lazy.lists.forEach(list => {
    h += '<div>' + list.map(r => `<div class="row"><span class="l">${esc(r[1])}</span><span class="val">${val(`${n}/${r[0]}`, values[at++])}</span><span class="aux">${esc(r[2])}</span></div>`).join('') + '</div>';
  });
  inner.innerHTML = `${h}<p class="w note">${prose(note)}</p>`;
  tabbable(inner);
}
document.addEventListener('toggle', e => { if (e.target.matches('.kern[open]')) build(e.target); if (e.target.open) draw(); }, true);

// Tooltips: hover and focus, click pins, Escape closes.
const T = island('tips'), tip = $('#tip');
let pinned = null, current = null, timer = 0;
function body(key) {
  const cut = key.indexOf('/'), id = key.slice(cut + 1), e = (T.k[key.slice(0, cut)] || {})[id], c = T.cat[id];
  if (!e || !c) return '';
  const [value, quality, formula, raw, reason] = e, W = T.words;
  let h = value ? `<b>${esc(value)}</b> <span class="k">${esc(W[quality || 0])}</span>` : '<b>not known</b>';
  h += `<p>${esc(c[0])}</p>`;
  if (reason) h += `<p>${esc(W[reason])}</p>`;
  if (formula) h += `<p class="m"><span class="k">= </span>${esc(W[formula])}</p>`;
  if (raw && raw.length) {
    h += '<table>';
    for (let i = 0; i < raw.length; i += 2) h += `<tr><td>${esc(T.names[raw[i]])}</td><td class="n">${esc(raw[i + 1])}</td></tr>`;
    h += '</table>';
  }
  if (value && c[1]) h += `<p class="k">Collected by ${esc(W[c[1]])}</p>`;
  if (!value && c[3]) h += `<p class="m">ncu ${esc(W[c[3]])} -o again ./your_program</p>`;
  if (c[2]) h += `<p>${esc(W[c[2]])}</p>`;
  return h + (c[4] && document.getElementById(`m-${id}`) ? `<p><a href="#m-${esc(id)}">${esc(id)}</a></p>` : '');
}
function show(el) {
  clearTimeout(timer);
  const h = body(el.dataset.t);
  if (!h) return;
  if (current) current.removeAttribute('aria-describedby');
  current = el; tip.innerHTML = h; tip.hidden = false; el.setAttribute('aria-describedby', 'tip');
  const r = el.getBoundingClientRect(), high = tip.offsetHeight;
  const x = Math.max(8, Math.min(r.left, root.clientWidth - tip.offsetWidth - 8));
  const y = r.bottom + 6 + high > innerHeight - 8 && r.top - high - 6 > 8 ? r.top - high - 6 : r.bottom + 6;
  tip.style.left = `${x + scrollX}px`; tip.style.top = `${y + scrollY}px`;
}
function hide(now) {
  if (pinned && !now) return;
  clearTimeout(timer);
  timer = setTimeout(() => {
    tip.hidden = true;
    if (current) current.removeAttribute('aria-describedby');
    current = pinned = null;
  }, now ? 0 : 140);
}
// One tab stop a group; elsewhere every number is one.
function tabbable(scope) {
  $$('[data-t]', scope).forEach(x => {
    if (x.hasAttribute('tabindex')) return;
    const group = x.closest('[data-rove]');
    x.tabIndex = !group || $('[data-t]', group) === x ? 0 : -1;
    x.setAttribute('role', 'button');
  });
}
if (T && tip) {
  tabbable(document);
  const at = e => e.target.closest && e.target.closest('[data-t]');
  const inTip = e => e.target.closest && e.target.closest('#tip');
  document.addEventListener('mouseover', e => { if (at(e) && !pinned) show(at(e)); else if (inTip(e)) clearTimeout(timer); });
  document.addEventListener('mouseout', e => { if (at(e) || inTip(e)) hide(); });
  document.addEventListener('focusin', e => { if (at(e)) { pinned = null; show(at(e)); } });
  document.addEventListener('focusout', e => { if (at(e) && !(e.relatedTarget && tip.contains(e.relatedTarget))) hide(); });
  document.addEventListener('click', e => {
    const el = at(e);
    if (el && pinned === el) hide(true);
    else if (el) { pinned = null; show(el); pinned = el; } else if (!inTip(e)) hide(true);
  });
}
document.addEventListener('keydown', e => {
  if (e.key === 'Escape' && tip) return hide(true);
  const el = document.activeElement, group = el && el.closest('[data-rove]');
  if (el && el.matches('[data-t]') && (e.key === 'Enter' || e.key === ' ')) { e.preventDefault(); return el.click(); }
  if (!group) return;
  const step = { ArrowDown: 1, ArrowRight: 1, ArrowUp: -1, ArrowLeft: -1 }[e.key];
  const all = $$('[data-t]', group).filter(x => x.offsetParent), i = all.indexOf(el);
  const j = e.key === 'Home' ? 0 : e.key === 'End' ? all.length - 1 : step ? i + step : -1;
  if (i < 0 || j < 0 || j >= all.length) return;
  e.preventDefault(); all[i].tabIndex = -1; all[j].tabIndex = 0; all[j].focus();
});

// Copy.
document.addEventListener('click', e => {
  const b = e.target.closest && e.target.closest('.cmd button');
  if (!b) return;
  const pre = $('pre', b.parentNode);
  const select = () => { const s = getSelection(); s.removeAllRanges(); s.selectAllChildren(pre); document.execCommand('copy'); };
  (navigator.clipboard ? navigator.clipboard.writeText(pre.textContent) : Promise.reject()).catch(select).then(() => {
    b.textContent = 'Copied'; setTimeout(() => { b.textContent = 'Copy'; }, 1400);
  });
});

// Tabs: without this script every panel shows.
$$('[role=tablist]').forEach(list => {
  const tabs = $$('[role=tab]', list);
  const select = (t, focus) => {
    tabs.forEach(x => {
      x.setAttribute('aria-selected', x === t); x.tabIndex = x === t ? 0 : -1;
      document.getElementById(x.getAttribute('aria-controls')).hidden = x !== t;
    });
    if (focus) t.focus();
  };
  tabs.forEach((t, i) => {
    t.addEventListener('click', () => select(t));
    t.addEventListener('keydown', e => {
      const d = { ArrowRight: 1, ArrowLeft: -1 }[e.key];
      if (d) { e.preventDefault(); select(tabs[(i + d + tabs.length) % tabs.length], true); }
    });
  });
  list.hidden = false;
  if (tabs.length) select(tabs[0]);
});

// Sort: numbers first descending, missing last.
const number = s => {
  const t = s.replace(/[,<≈\s]/g, '').replace('−', '-'), scale = (t.match(/^-?[\d.]+([kMGT])/) || [])[1];
  return parseFloat(t) * ({ k: 1e3, M: 1e6, G: 1e9, T: 1e12 }[scale] || 1);
};
function sort(table, th) {
  const i = th.cellIndex, isNumber = th.classList.contains('n'), was = th.getAttribute('aria-sort');
  const dir = was === 'descending' ? 'ascending' : was === 'ascending' || isNumber ? 'descending' : 'ascending';
  $$('th[aria-sort]', table).forEach(x => x.setAttribute('aria-sort', 'none'));
  th.setAttribute('aria-sort', dir);
  const key = r => { const c = r.cells[i], s = c.dataset.s || c.textContent.trim(); return isNumber ? number(s) : s; };
  const lost = x => x === '' || x !== x;
  const rows = [...table.tBodies[0].rows].map(r => [key(r), r]);
  rows.sort(([x], [y]) => lost(x) || lost(y) ? lost(x) - lost(y) : (isNumber ? x - y : x.localeCompare(y)) * (dir === 'ascending' ? 1 : -1));
  table.tBodies[0].append(...rows.map(r => r[1]));
}
document.addEventListener('click', e => {
  const th = e.target.closest && e.target.closest('table[data-sort] th[aria-sort]');
  if (th) sort(th.closest('table'), th);
});

// Filter, and the two views of the table of launches.
function filter(inp) {
  const q = inp.value.trim().toLowerCase();
  let n = 0, all = 0;
  $$(inp.dataset.filter).forEach(r => {
    const hit = !q || r.textContent.toLowerCase().includes(q);
    r.hidden = !hit;
    if (!r.closest('[data-view][hidden]')) { all++; n += hit; }
  });
  $(inp.dataset.count).textContent = `${n} of ${all}`;
}
$$('input[data-filter]').forEach(inp => inp.addEventListener('input', () => filter(inp)));
function rowsOf(view) {
  const tbody = $('tbody[data-lazy]', view);
  if (!tbody || tbody.childElementCount) return;
  tbody.innerHTML = lazy.table.map(r => `<tr><td class="n"><a href="#kernel-${r[0]}">${r[0]}</a></td><th scope="row"><code>${esc(lazy.words[r[1]])}</code></th>${r.slice(2, -1).map(c => `<td class="n">${esc(c)}</td>`).join('')}<td>${esc(lazy.words[r[r.length - 1]])}</td></tr>`).join('');
}
$$('input[name=view]').forEach(r => r.addEventListener('change', () => {
  $$('[data-view]').forEach(x => { x.hidden = x.dataset.view !== r.value; if (!x.hidden) rowsOf(x); });
  $$('input[data-filter]').forEach(filter);
}));

// Deep links open what they point to.
function go() {
  const e = document.getElementById(decodeURIComponent(location.hash.slice(1)));
  if (!e) return;
  for (let p = e; p; p = p.parentElement) if (p.tagName === 'DETAILS') { p.open = true; build(p); }
  const panel = e.closest('[role=tabpanel]');
  if (panel && panel.hidden) $(`[aria-controls="${panel.id}"]`).click();
  e.scrollIntoView();
}
addEventListener('hashchange', go);

// Contents: the section in view.
const links = $$('.toc a');
if (links.length && 'IntersectionObserver' in window) {
  const seen = {};
  const watch = new IntersectionObserver(es => {
    es.forEach(x => { seen[x.target.id] = x.isIntersecting; });
    const first = links.find(a => seen[a.hash.slice(1)]);
    links.forEach(a => (a === first ? a.setAttribute('aria-current', 'true') : a.removeAttribute('aria-current')));
  }, { rootMargin: '-8% 0px -60% 0px' });
  links.forEach(a => { const s = document.getElementById(a.hash.slice(1)); if (s) watch.observe(s); });
}

// Figures: plain JSON; var(--x) becomes the colour of the theme, labels turn with the drawn size.
const figures = island('figures') || {};
let printing = false;
const resolved = (o, css) => typeof o === 'string' ? o.replace(/var\((--[\w-]+)\)/g, (m, n) => css.getPropertyValue(n).trim())
  : Array.isArray(o) ? o.map(x => resolved(x, css))
    : o && typeof o === 'object' ? Object.fromEntries(Object.entries(o).map(([k, x]) => [k, resolved(x, css)])) : o;
function drawOne(el) {
  const spec = figures[el.dataset.fig], width = printing ? 680 : Math.floor(el.clientWidth);
  if (!spec || !width) return;
  if (typeof Plotly === 'undefined') { const ph = $('.ph', el); if (ph) ph.textContent = 'Figure not drawn: the figure library is missing. The table holds the same numbers.'; return; }
  const css = getComputedStyle(root), f = resolved(spec, css), L = f.layout, slim = width < 560;
  L.width = width; L.font.family = css.getPropertyValue('--sans');
  L.hoverlabel.font.family = L.font.family;
  if (slim) Object.assign(L, f.slim);
  if (printing) L.height = Math.round(L.height * 0.82);
  const w = width - L.margin.l - L.margin.r, h = L.height - L.margin.t - L.margin.b, X = L.xaxis.range, Y = L.yaxis.range;
  const angle = Math.atan2(h / (Y[1] - Y[0]), w / (X[1] - X[0]));
  L.annotations = L.annotations.filter(a => (slim ? a.slim : a.wide)).map(({ along, off, wide, slim: s, ...a }) => along
    ? { ...a, textangle: -angle * 180 / Math.PI, xshift: -off * Math.sin(angle), yshift: off * Math.cos(angle) } : a);
  el.style.height = `${L.height}px`;
  const ph = $('.ph', el); if (ph) ph.remove();
  Plotly.react(el, f.data, L, { displayModeBar: false, responsive: false, scrollZoom: false, doubleClick: false, showTips: false });
}
function draw() { $$('[data-fig]').forEach(el => { if (el.offsetParent || printing) drawOne(el); }); }
let later = 0;
addEventListener('resize', () => { clearTimeout(later); later = setTimeout(draw, 120); });
addEventListener('beforeprint', () => {
  printing = true; root.dataset.theme = 'light';
  $$('details[data-printopen]:not([open])').forEach(d => { d.open = true; d.dataset.auto = 1; });
  draw();
});
addEventListener('afterprint', () => {
  printing = false; applyTheme();
  $$('details[data-auto]').forEach(d => { d.open = false; delete d.dataset.auto; });
  draw();
});
// A row of the table shows its point.
$$('tr[data-pt]').forEach(r => {
  const [fig, key] = r.dataset.pt.split(/:(.*)/), el = $(`[data-fig="${fig}"]`);
  const on = () => {
    r.classList.add('on');
    (el && el.data || []).forEach((t, c) => { const p = (t.customdata || []).indexOf(key); if (p >= 0) Plotly.Fx.hover(el, [{ curveNumber: c, pointNumber: p }]); });
  };
  const off = () => { r.classList.remove('on'); if (el && el.data) Plotly.Fx.unhover(el); };
  ['mouseenter', 'focusin'].forEach(n => r.addEventListener(n, on));
  ['mouseleave', 'focusout'].forEach(n => r.addEventListener(n, off));
});
document.addEventListener('DOMContentLoaded', () => { draw(); go(); });
})();
