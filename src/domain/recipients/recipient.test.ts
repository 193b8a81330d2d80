import { describe, expect, test } from 'vitest'
import { correctedRecipient, namesOf, otherSpelling, parseRecipient, shortSpelling } from './recipient.ts'

describe('a recipient', () => {
  test.each(['1234567', '5511987654321', '123456789012345'])('%s is a number', to => {
    expect(parseRecipient(to)).toEqual({ kind: 'number', number: to })
  })

  test.each(['120363000000000042@g.us', '5511987654321-1600000000@g.us'])('%s is a group', to => {
    expect(parseRecipient(to)).toEqual({ kind: 'group', group: to })
  })

  test('990000007654321@lid is a LID', () => {
    expect(parseRecipient('990000007654321@lid')).toEqual({ kind: 'lid', lid: '990000007654321@lid' })
  })

  test.each([
    '',
    '123456',
    '1234567890123456',
    '0511987654321',
    '+5511987654321',
    '55 11 98765',
    '5511987654321\n',
    '５５１１９８７６５４',
    '@g.us',
    '1-@g.us',
    '1-2-3@g.us',
    '12@s.whatsapp.net',
    '12@G.US',
    `${'1'.repeat(80)}@g.us`,
    '0123456@lid',
    '990000007654321:2@lid',
  ])('%j is neither a number nor a group nor a LID', to => {
    expect(parseRecipient(to)).toBeNull()
  })
})

test.each([
  ['+55 11 98765-4321', '5511987654321'],
  ['+55 (11) 98765.4321', '5511987654321'],
  ['005511987654321', '5511987654321'],
  ['5511987654321@s.whatsapp.net', '5511987654321'],
  ['5511987654321:12@c.us', '5511987654321'],
  ['whatsapp:+5511987654321', '5511987654321'],
  ['990000007654321:2@lid', '990000007654321@lid'],
  ['120363000000000042@G.US', '120363000000000042@g.us'],
  ['Ana', null],
  ['123', null],
  ['5511987654321', null],
  ['', null],
  ['+'.repeat(80), null],
])('the suggested correction of %j is %j', (to, corrected) => {
  expect(correctedRecipient(to)).toBe(corrected)
})

test.each([
  ['5511987654321', '551187654321'],
  ['5215512345678', '525512345678'],
  ['5491112345678', '541112345678'],
])('%s may be written %s', (long, short) => {
  expect([shortSpelling(long), shortSpelling(short)]).toEqual([short, short])
  expect([otherSpelling(long), otherSpelling(short)]).toEqual([short, long])
})

test.each(['15551230001', '4915112345678', '120363041234567890@g.us', '123456789012345@lid'])(
  '%s has one spelling',
  name => {
    expect(shortSpelling(name)).toBe(name)
    expect(otherSpelling(name)).toBeNull()
  },
)

test.each([
  ['5511987654321', undefined, ['5511987654321', '551187654321']],
  ['5511987654321', null, ['5511987654321']],
  ['5511987654321', '5511987654321@s.whatsapp.net', ['5511987654321']],
  ['5511987654321', '551187654321@s.whatsapp.net', ['5511987654321', '551187654321']],
  ['15551230001', '123456789012345@lid', ['123456789012345@lid', '15551230001']],
  ['123456789012345@lid', '15551230001@s.whatsapp.net', ['123456789012345@lid', '15551230001']],
  ['123456789012345@lid', undefined, ['123456789012345@lid']],
] as const)('%s, looked up as %s, may write from %j', (to, address, names) => {
  expect(namesOf(to, address)).toEqual(names)
})
