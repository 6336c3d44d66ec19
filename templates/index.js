// Choose rows by GPU, class and name; the rooflines show the points of the rows that are left.
addEventListener('DOMContentLoaded', () => {
  'use strict';
  const all = s => [...document.querySelectorAll(s)];
  const picks = all('[data-pick]'), rows = all('#measured tbody tr');
  const chosen = Object.fromEntries(picks.map(p => [p.dataset.pick, p]));
  let left = null;
  const apply = () => {
    const gpu = chosen.gpu.value, cls = chosen.class.value, name = chosen.name.value.trim().toLowerCase();
    left = gpu || cls || name ? new Set() : null;
    let n = 0;
    rows.forEach(r => {
      const hit = (!gpu || r.dataset.gpu === gpu) && (!cls || r.dataset.class === cls)
        && (!name || r.querySelector('code').textContent.toLowerCase().includes(name));
      r.hidden = !hit; n += hit;
      if (hit && left) left.add(r.id.slice(4));
    });
    document.getElementById('picked').textContent = left ? `${n} of ${rows.length}` : '';
    all('[data-fold]').forEach(d => {
      d.hidden = gpu !== '' && d.dataset.fold !== gpu;
      if (gpu && !d.hidden) d.open = true;
    });
    dispatchEvent(new Event('resize'));
  };
  picks.forEach(p => p.addEventListener('input', apply));
  if (typeof Plotly === 'undefined') return;
  const react = Plotly.react;
  const kept = t => {
    if (!left || !t.ids) return t;
    const at = t.ids.map((ids, i) => i).filter(i => t.ids[i].split(' ').some(id => left.has(id)));
    const only = a => (Array.isArray(a) ? at.map(i => a[i]) : a);
    return { ...t, x: only(t.x), y: only(t.y), ids: only(t.ids), customdata: only(t.customdata), marker: { ...t.marker, size: only(t.marker.size) } };
  };
  Plotly.react = (el, data, ...rest) => react(el, data.map(kept), ...rest);
});
