import { describe, expect, test } from 'vitest'
import type { AcceptedText, Arrival, Facts, IncomingText } from './facts.ts'
import { judge } from './judge.ts'
import { firstLineOf } from './texts.ts'

const INSTANCE = 'inst_a'
const PHONE = '5511900000001'

function arrival(kind: string, subject: string, boot = 1, more: Partial<Arrival> = {}): Arrival {
  const eventId = `evt_${kind}_${subject}`
  return { instanceId: INSTANCE, eventId, kind, subject, body: eventId, signed: true, attemptNumber: 1, boot, ...more }
}

function allEvents(subject: string, boot = 1): Arrival[] {
  return ['message.sent', 'message.delivered', 'message.read'].map(kind => arrival(kind, subject, boot))
}

/** Facts in which every guarantee holds, apart from `change`. */
function facts(change: Partial<Facts> = {}): Facts {
  return {
    accepted: [accepted('msg_1', 'one')],
    incoming: [incoming('IN1', 0)],
    arrivals: [...allEvents('msg_1'), arrivalOf('IN1')],
    phones: new Map([[PHONE, [{ id: '3EB0', text: 'one', copies: 1 }]]]),
    states: new Map([['msg_1', 'read']]),
    wholeTexts: new Map(),
    ...change,
  }
}

function incoming(text: string, place: number, more: Partial<IncomingText> = {}): IncomingText {
  return {
    instanceId: INSTANCE,
    text,
    from: PHONE,
    whatsappId: firstLineOf(text),
    undecryptable: false,
    place,
    ...more,
  }
}

/** What is reported of an incoming text. @param data what is not as it was written */
function arrivalOf(text: string, data: object = {}, more: Partial<Arrival> = {}): Arrival {
  const line = firstLineOf(text)
  const body = JSON.stringify({ data: { id: line, from: PHONE, text, ...data } })
  return arrival('message.received', line, 1, { body, ...more })
}

const received = arrivalOf('IN1')

function accepted(messageId: string, text: string, more: Partial<AcceptedText> = {}): AcceptedText {
  const times = { offeredAt: 1, acceptedAt: 2 }
  return {
    instanceId: INSTANCE,
    messageId,
    text,
    to: PHONE,
    chat: PHONE,
    phones: [PHONE],
    end: 'read',
    ...times,
    ...more,
  }
}

describe('the judge of a crash run', () => {
  test('finds nothing if every guarantee held', () => {
    expect(judge(facts())).toEqual({
      violations: [],
      lost: 0,
      doubled: 0,
      outOfOrder: 0,
      lostIncoming: [],
      repeatedAttempts: 0,
      mostRepeatedPerKill: 0,
      repeatedOnWire: 0,
      askedFor: 0,
      undecryptable: 0,
      incomingRequestedAgain: 0,
    })
  })

  test('accepts an attempt that a kill repeated, and a copy that the phone does not show', () => {
    const [sent, delivered, read] = allEvents('msg_1') as [Arrival, Arrival, Arrival]
    const verdict = judge(
      facts({
        arrivals: [sent, { ...sent, boot: 2 }, { ...delivered, boot: 2 }, { ...read, boot: 2 }, received],
        phones: new Map([[PHONE, [{ id: '3EB0', text: 'one', copies: 2 }]]]),
      }),
    )
    expect(verdict).toMatchObject({ violations: [], repeatedAttempts: 1, mostRepeatedPerKill: 1, repeatedOnWire: 1 })
  })

  test('expects neither "delivered" nor "read" of a text whose recipient sends no receipts', () => {
    const quiet = {
      accepted: [accepted('msg_1', 'one', { end: 'sent' })],
      states: new Map([['msg_1', 'sent']]),
    }
    expect(judge(facts({ ...quiet, arrivals: [arrival('message.sent', 'msg_1'), received] })).violations).toEqual([])
    expect(judge(facts(quiet)).violations).toHaveLength(1)
  })

  const entry = { id: '3EB0', text: 'one', copies: 1 }
  const [sent, delivered, read] = allEvents('msg_1') as [Arrival, Arrival, Arrival]
  const broken: [promise: string, change: Partial<Facts>, violation: RegExp][] = [
    ['a text that is on no phone', { phones: new Map() }, /msg_1 is 0 times on the phone/],
    [
      'a text shown twice under two ids',
      { phones: new Map([[PHONE, [entry, { ...entry, id: '3EB1' }]]]) },
      /msg_1 is 2 times/,
    ],
    [
      'a text that nobody sent',
      { phones: new Map([[PHONE, [entry, { id: '3EB2', text: 'other', copies: 1 }]]]) },
      /3EB2, which nobody sent/,
    ],
    ['an event that never came', { arrivals: [sent, delivered, received] }, /No message.read of msg_1/],
    ['an event before its predecessor', { arrivals: [sent, read, delivered, received] }, /sent, message.read/],
    [
      'a predecessor posted again after its successor',
      { arrivals: [sent, delivered, { ...sent, boot: 2 }, read, received] },
      /delivered, message.sent/,
    ],
    [
      'one change reported under two ids',
      { arrivals: [sent, { ...sent, eventId: 'evt_other', boot: 2 }, delivered, read, received] },
      /under 2 event IDs/,
    ],
    [
      'bytes that differ between attempts',
      { arrivals: [sent, { ...sent, body: 'other', boot: 2 }, delivered, read, received] },
      /different bytes/,
    ],
    ['a bad signature', { arrivals: [{ ...sent, signed: false }, delivered, read, received] }, /invalid signature/],
    ['a message stuck queued', { states: new Map([['msg_1', 'queued']]) }, /msg_1 is queued in the end/],
    ['a repeat without a kill', { arrivals: [sent, sent, delivered, read, received] }, /without a kill/],
    [
      'two texts in the wrong order',
      {
        accepted: [accepted('msg_1', 'one'), accepted('msg_2', 'two', { offeredAt: 3, acceptedAt: 4 })],
        phones: new Map([[PHONE, [{ ...entry, id: '3EB1', text: 'two' }, entry]]]),
      },
      /shows msg_1 after msg_2/,
    ],
    [
      'an event about a message that was never accepted',
      { arrivals: [...facts().arrivals, ...allEvents('msg_2')] },
      /msg_2 inst_a was reported but never/,
    ],
  ]

  for (const [promise, change, violation] of broken) {
    test(`finds ${promise}`, () => {
      expect(judge(facts(change)).violations.join('\n')).toMatch(violation)
    })
  }

  test('finds more repeats after one kill than could have been in flight', () => {
    const ids = Array.from({ length: 9 }, (_, index) => `IN${index}`)
    const once = ids.map(id => arrivalOf(id))
    const verdict = judge(
      facts({
        incoming: ids.map((text, place) => incoming(text, place)),
        arrivals: [...allEvents('msg_1'), ...once, ...once.map(posted => ({ ...posted, boot: 2 }))],
      }),
    )
    expect(verdict.violations).toEqual(['9 attempts were repeated for inst_a, kill 1.'])
  })

  test('accepts any order of two texts that were sent at the same time', () => {
    const later = accepted('msg_2', 'two', { offeredAt: 1.5, acceptedAt: 3 })
    const shown = [{ ...entry, id: '3EB1', text: 'two' }, entry]
    const verdict = judge(facts({ accepted: [accepted('msg_1', 'one'), later], phones: new Map([[PHONE, shown]]) }))
    expect(verdict.outOfOrder).toBe(0)
  })

  const OTHER_SPELLING = '551100000001'

  test('treats two spellings of a number as one chat', () => {
    const later = accepted('msg_2', 'two', { to: OTHER_SPELLING, offeredAt: 3, acceptedAt: 4 })
    const shown = [{ ...entry, id: '3EB1', text: 'two' }, entry]
    const verdict = judge(facts({ accepted: [accepted('msg_1', 'one'), later], phones: new Map([[PHONE, shown]]) }))
    expect(verdict.violations).toContainEqual(expect.stringMatching(/shows msg_1 after msg_2/))
  })

  test('lists incoming messages without an event separately', () => {
    expect(judge(facts({ arrivals: allEvents('msg_1') }))).toMatchObject({ violations: [], lostIncoming: ['IN1'] })
  })

  describe('of incoming texts', () => {
    const long = `IN1\n${'x'.repeat(65_531)}🕊 and so on`
    const cut = long.slice(0, 65_535)
    const beginning = { text: cut, truncated: true, messageId: 'msg_in' }

    function judgeIncoming(texts: readonly IncomingText[], arrivals: readonly Arrival[], whole = long) {
      return judge(
        facts({
          incoming: [...texts],
          arrivals: [...allEvents('msg_1'), ...arrivals],
          wholeTexts: new Map([['msg_in', whole]]),
        }),
      )
    }

    const [one, two] = [incoming('IN1', 0), incoming('IN2', 1)]
    const [first, second] = [{ eventId: 'evt_1' }, { eventId: 'evt_2' }]

    test('finds events of one chat in another order than the texts, unless one was undecryptable at first', () => {
      const arrivals = [arrivalOf('IN2', {}, first), arrivalOf('IN1', {}, second)]
      expect(judgeIncoming([one, two], arrivals)).toMatchObject({ outOfOrder: 1 })
      expect(judgeIncoming([{ ...one, askedFor: 1 }, two], arrivals)).toMatchObject({ outOfOrder: 1 })
      const spoiled = { ...one, undecryptable: true }
      expect(judgeIncoming([spoiled, two], arrivals)).toMatchObject({ outOfOrder: 0, violations: [] })
      expect(judgeIncoming([{ ...one, group: 'other' }, two], arrivals)).toMatchObject({ outOfOrder: 0 })
    })

    test('uses the order of event IDs, not of the arrival of concurrent attempts', () => {
      const arrivals = [arrivalOf('IN2', {}, second), arrivalOf('IN1', {}, first)]
      expect(judgeIncoming([one, two], arrivals)).toMatchObject({ violations: [] })
    })

    test('accepts the beginning of a long text whose full text can be read, and a sender named by LID', () => {
      expect(judgeIncoming([incoming(long, 0)], [arrivalOf(long, beginning)]).violations).toEqual([])
      const byLid = arrivalOf('IN1', { from: '99', addressing: 'lid' })
      expect(judgeIncoming([one], [byLid]).violations).toEqual([])
    })

    test.each<[string, IncomingText, Arrival, RegExp]>([
      ['a text that is too long for an event', incoming(long, 0), arrivalOf(long), /carries 65547 units/],
      ['another text', one, arrivalOf('IN1', { text: 'IN1\n' }), /has another text/],
      [
        'a beginning that is too short',
        incoming(long, 0),
        arrivalOf(long, { ...beginning, text: 'IN1\n' }),
        /the beginning/,
      ],
      [
        'a beginning that is cut inside a character',
        incoming(long, 0),
        arrivalOf(long, { ...beginning, text: long.slice(0, 65_536) }),
        /the beginning/,
      ],
      ['another sender', one, arrivalOf('IN1', { from: '55' }), /names another sender/],
      ['another group', one, arrivalOf('IN1', { group: 'g' }), /names another group/],
      ['another id', one, arrivalOf('IN1', { id: 'other' }), /another WhatsApp id/],
    ])('finds %s', (_, text, posted, violation) => {
      expect(judgeIncoming([text], [posted]).violations.join()).toMatch(violation)
    })

    test('finds that the full text of a long one cannot be read', () => {
      expect(judgeIncoming([incoming(long, 0)], [arrivalOf(long, beginning)], cut).violations.join()).toMatch(
        /another text/,
      )
    })
  })
})
