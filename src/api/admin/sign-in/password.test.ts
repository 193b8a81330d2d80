import { expect, test } from 'vitest'
import { hashPassword, isPassword } from './password.ts'

test('a hash takes its own password and no other, and never looks the same twice', async () => {
  const hash = await hashPassword('correct horse battery')
  expect(hash).not.toContain('horse')
  expect(await isPassword('correct horse battery', hash)).toBe(true)
  expect(await isPassword('correct horse batterz', hash)).toBe(false)
  expect(await isPassword('', hash)).toBe(false)
  expect(await hashPassword('correct horse battery')).not.toBe(hash)
})

test('a password counts however its accents were typed', async () => {
  expect(await isPassword('cafe\u0301 com leite', await hashPassword('caf\u00e9 com leite'))).toBe(true)
})
