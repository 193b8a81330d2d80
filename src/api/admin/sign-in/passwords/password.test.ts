import { expect, test } from 'vitest'
import { hashPassword, isPassword } from './password.ts'

test('a hash accepts only its own password, and every hash of a password is different', async () => {
  const hash = await hashPassword('correct horse battery', 'me')
  expect(hash).not.toContain('horse')
  expect(await isPassword('correct horse battery', hash)).toBe(true)
  expect(await isPassword('correct horse batterz', hash)).toBe(false)
  expect(await isPassword('', hash)).toBe(false)
  expect(await hashPassword('correct horse battery', 'me')).not.toBe(hash)
})

test('a password is accepted in any Unicode normalisation', async () => {
  expect(await isPassword('cafe\u0301 com leite', await hashPassword('caf\u00e9 com leite', 'me'))).toBe(true)
})
