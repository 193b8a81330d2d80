import { execFileSync } from 'node:child_process'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { csvFile, csvLine } from './csv.ts'
import { curlOfAttempt, curlOfCall } from './curl.ts'
import { prettyJson } from './pretty-json.ts'
import { fromZoned, toZoned } from './time-zone.ts'

describe('CSV', () => {
  test.each(['=1+1', '+55', '-1', '@a', '\tx', '\rx', '\nx', '＝1+1'])(
    'a text that begins like a formula gets an apostrophe: %j',
    text => {
      expect(csvLine([text]).replaceAll('"', '')).toBe(`'${text}\r\n`)
    },
  )

  test.each([
    ['Olá ;=1+1;', "Olá ;'=1+1;"],
    ['a\t=1', "a\t'=1"],
    ['\n=1', "'\n'=1"],
    ['a; -1', "a; '-1"],
    ['=1;=2', "'=1;'=2"],
    ['a;"=1"', `a;"'=1"`],
    ['a = b-c; d', 'a = b-c; d'],
  ])('so does a text after a separator of another kind of spreadsheet: %j', (text, safe) => {
    const quoted = csvLine([text]).trimEnd()
    expect(quoted.replaceAll('""', '~').replaceAll('"', '').replaceAll('~', '"')).toBe(safe)
  })

  test('quotes separators, quotes and line breaks; numbers and missing values stay as they are', () => {
    expect(csvLine(['a,b', 'say "x"', 'two\nlines', -1, null, 'plain'])).toBe(
      '"a,b","say ""x""","two\nlines",-1,,plain\r\n',
    )
  })
})

describe('a CSV file', () => {
  async function* pages() {
    yield ['a', 'b']
    yield ['c', 'é'.repeat(50)]
  }
  const fileOf = async (maxBytes?: number) => {
    const seen: number[] = []
    const { file, ...rest } = await csvFile(
      pages(),
      ['name'],
      name => [name],
      rows => seen.push(rows),
      maxBytes,
    )
    return { ...rest, seen, text: new TextDecoder('utf-8', { ignoreBOM: true }).decode(await file.arrayBuffer()) }
  }

  test('has all pages', async () => {
    const text = `\uFEFFname\r\na\r\nb\r\nc\r\n${'é'.repeat(50)}\r\n`
    expect(await fileOf()).toEqual({ rows: 4, isCut: false, seen: [2, 4], text })
  })

  test('ends with the last page that fits, and says so', async () => {
    expect(await fileOf(100)).toEqual({ rows: 2, isCut: true, seen: [2], text: '\uFEFFname\r\na\r\nb\r\n' })
  })
})

describe('curl', () => {
  const HOSTILE = `'; touch /tmp/x; echo "$HOME" \`id\` \\'`

  test('the token is a variable, and a shell reads every other text unchanged', () => {
    const command = curlOfCall(
      { method: 'POST', path: '/v1/messages/text', body: { to: '551', text: HOSTILE } },
      'http://localhost:3000',
    )
    expect(command).toContain('Bearer $POMBAL_TOKEN')
    const words = run(command)
    expect(words).toEqual([
      ...['-X', 'POST', 'http://localhost:3000/v1/messages/text', '-H', 'Authorization: Bearer the token'],
      ...['-H', 'Content-Type: application/json', '--data-raw', JSON.stringify({ to: '551', text: HOSTILE })],
    ])
  })

  test('an attempt has its headers and its exact body', () => {
    const posted = { url: `http://x/?a='b'`, headers: { 'webhook-id': 'evt_1' }, body: HOSTILE }
    expect(run(curlOfAttempt(posted))).toEqual([
      ...['-X', 'POST', posted.url, '-H', 'webhook-id: evt_1', '--data-raw', HOSTILE],
    ])
  })

  /** The arguments that a shell passes to `curl`. */
  function run(command: string): string[] {
    const script = `curl() { for word in "$@"; do printf '%s\\0' "$word"; done; }\n${command}`
    const out = execFileSync('sh', ['-c', script], { env: { POMBAL_TOKEN: 'the token' } })
    return out.toString().split('\0').slice(0, -1)
  }
})

describe('pretty JSON', () => {
  test('has the layout of JSON.stringify', () => {
    fc.assert(
      fc.property(fc.oneof(fc.dictionary(fc.string(), fc.jsonValue()), fc.array(fc.jsonValue())), value => {
        const text = JSON.stringify(value)
        expect(prettyJson(text)).toBe(JSON.stringify(JSON.parse(text), null, 2))
      }),
    )
  })

  test('keeps the digits of large numbers and the spelling of strings', () => {
    expect(prettyJson('{"a":12345678901234567890,"b":"\\u00e9"}')).toBe(
      '{\n  "a": 12345678901234567890,\n  "b": "\\u00e9"\n}',
    )
  })

  test.each(['', 'ok', '42', '{"cut":', '<html>'])('anything else is left alone: %j', text => {
    expect(prettyJson(text)).toBeNull()
  })
})

describe('date fields', () => {
  test.each([
    ['America/Sao_Paulo', '2026-11-23T14:05', '2026-11-23T17:05:00.000Z'],
    ['UTC', '2026-11-23T14:05', '2026-11-23T14:05:00.000Z'],
    ['Asia/Kolkata', '2026-11-23T14:05', '2026-11-23T08:35:00.000Z'],
    // An hour after the clocks went forward.
    ['Europe/Berlin', '2026-03-29T03:30', '2026-03-29T01:30:00.000Z'],
  ])('%s: %s is %s', (zone, local, iso) => {
    expect(fromZoned(local, zone)).toBe(iso)
    expect(toZoned(iso, zone)).toBe(local)
  })

  test.each(['0002', '0020', '0202'])('a year that is being typed stays in the field: %s', year => {
    const local = `${year}-11-23T14:05`
    for (const zone of ['UTC', 'America/Sao_Paulo']) expect(toZoned(fromZoned(local, zone), zone)).toBe(local)
  })

  test('a missing time is an empty field', () => {
    expect([toZoned(undefined, 'UTC'), toZoned('soon', 'UTC'), fromZoned('', 'UTC')]).toEqual(['', '', undefined])
  })
})
