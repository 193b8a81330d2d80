import { describe, expect, test } from 'vitest'
import { parseRecipient } from './recipient.ts'

describe('a recipient', () => {
  test.each(['1234567', '5511987654321', '123456789012345'])('%s is a number', to => {
    expect(parseRecipient(to)).toEqual({ kind: 'number', number: to })
  })

  test.each(['120363000000000042@g.us', '5511987654321-1600000000@g.us'])('%s is a group', to => {
    expect(parseRecipient(to)).toEqual({ kind: 'group', group: to })
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
  ])('%j is neither a number nor a group', to => {
    expect(parseRecipient(to)).toBeNull()
  })
})
