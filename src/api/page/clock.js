// The clock in the header: what it shows, and the buttons that move it.

import { call, note } from './api.js';
import { $, busy, clockTime, dateTime, parseSpan, say, span } from './dom.js';

export class ClockBar {
  #state;

  constructor(state) {
    this.#state = state;
    for (const node of document.querySelectorAll('[data-advance]')) {
      node.addEventListener('click', () => busy(node, () => this.#turn({ advance_ms: Number(node.dataset.advance) })));
    }
    $('clock-freeze').addEventListener('click', () => busy($('clock-freeze'), () => this.freezeOrRun()));
    $('clock-custom').addEventListener('submit', (event) => {
      event.preventDefault();
      this.#custom($('clock-by').value);
    });
  }

  freezeOrRun() {
    return this.#turn(this.#state.clock?.frozen ? { run: true } : { freeze: true });
  }

  #custom(text) {
    if (/^\d{4}-/.test(text.trim())) return this.#turn({ set: text.trim() });
    const ms = parseSpan(text);
    if (ms === null) {
      note('Write a time as 90s, 5m, 2h or 1d, or a moment as 2030-01-01T00:00:00Z.', 'bad');
      return undefined;
    }
    return this.#turn({ advance_ms: ms });
  }

  async #turn(body) {
    try {
      this.#state.setClock(await call('POST', 'clock', { body }));
      this.draw();
    } catch (error) {
      note(error.message, 'bad');
    }
  }

  draw() {
    const { clock } = this.#state;
    if (!clock) return;
    const now = this.#state.now();
    say($('clock-now'), clockTime(now, clock.frozen ? 3 : 1));
    $('clock-now').title = `The server's clock: ${dateTime(now)} UTC`;
    const pill = $('clock-state');
    const ahead = Math.round((now - this.#state.systemNow()) / 100) * 100;
    const shift = Math.abs(ahead) < 500 ? '' : `${ahead > 0 ? '+' : ''}${span(ahead)}`;
    say(pill, clock.frozen ? 'Frozen' : shift || 'In step');
    pill.title = shift ? `${shift} against the system's clock` : 'The same as the system\u2019s clock';
    pill.className = `pill ${clock.frozen ? 'cold' : shift ? 'warn' : ''}`;
    const freeze = $('clock-freeze');
    say(freeze, clock.frozen ? 'Run' : 'Freeze');
    freeze.setAttribute('aria-pressed', String(clock.frozen));
    $('clock').classList.toggle('frozen', clock.frozen);
  }
}
