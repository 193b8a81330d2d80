import { Type } from 'typebox'
import { describe, expect, test } from 'vitest'
import { compileValidator } from './schemas.ts'

function check(httpPart: string, schema: object, value: unknown) {
  const validate = compileValidator({ schema: schema as never, httpPart, method: 'GET', url: '/' }) as (
    given: unknown,
  ) => true | { value?: unknown; error?: Error & { code: string; details: unknown } }
  return validate(value)
}

const body = Type.Object({
  to: Type.String(),
  n: Type.Optional(Type.Integer()),
  in: Type.Optional(Type.Object({ a: Type.String() })),
  as: Type.Optional(Type.Enum(['image', 'video'])),
  at: Type.Optional(Type.String({ format: 'date-time' })),
  none: Type.Optional(Type.Unsafe({ type: ['object', 'null'] })),
  only: Type.Optional(Type.Object({ a: Type.String() }, { additionalProperties: false })),
})
const query = Type.Object({ limit: Type.Optional(Type.Integer({ minimum: 1 })), to: Type.Optional(Type.String()) })

describe('a body', () => {
  test('is passed on unchanged, including unknown fields', () => {
    expect(check('body', body, { to: 'x', more: 1 })).toBe(true)
  })

  test.each([
    [{}, '"to" is required.', [{ field: 'to', message: 'is required' }]],
    [null, '"to" is required.', [{ field: 'to', message: 'is required' }]],
    [{ to: 1 }, '"to" must be a string.', [{ field: 'to', message: 'must be a string' }]],
    [{ to: 'x', n: '1' }, '"n" must be an integer.', [{ field: 'n', message: 'must be an integer' }]],
    [
      { to: 'x', as: 'x' },
      '"as" must be one of image, video.',
      [{ field: 'as', message: 'must be one of image, video' }],
    ],
    [
      { to: 'x', only: { a: 'x', b: 1 } },
      '"only.b" is not a field of this call.',
      [{ field: 'only.b', message: 'is not a field of this call' }],
    ],
    [
      { to: 'x', at: 'soon' },
      '"at" must be an ISO 8601 time such as 2026-11-21T12:00:00Z.',
      [{ field: 'at', message: 'must be an ISO 8601 time such as 2026-11-21T12:00:00Z' }],
    ],
    [
      { to: 'x', none: 1 },
      '"none" must be an object or null.',
      [{ field: 'none', message: 'must be an object or null' }],
    ],
    [{ to: 'x', in: {} }, '"in.a" is required.', [{ field: 'in.a', message: 'is required' }]],
  ])('%j is refused, and the error names the field', (value, message, details) => {
    const { error } = check('body', body, value) as { error: Error }
    expect(error).toMatchObject({ code: 'invalid_request', message, details })
  })
})

describe('a field with alternatives', () => {
  const alternatives = Type.Object({
    file: Type.Optional(Type.Union([Type.String(), Type.Object({ url: Type.String({ minLength: 1, maxLength: 9 }) })])),
    people: Type.Optional(Type.Unsafe({ anyOf: [Type.Array(Type.String()), { type: 'string', const: 'all' }] })),
    shown: Type.Optional(
      Type.Unsafe({ anyOf: [Type.Object({ a: Type.String() }), { type: 'boolean', const: false }, { type: 'null' }] }),
    ),
  })

  test.each([
    [{ file: { url: '' } }, '"file.url" must not have fewer than 1 characters.'],
    [{ file: { url: 'x'.repeat(10) } }, '"file.url" must not have more than 9 characters.'],
    [{ file: {} }, '"file.url" is required.'],
    [{ file: { id: 'x' } }, '"file.url" is required.'],
    [{ file: null }, '"file" must be a string or an object.'],
    [{ people: 'x' }, '"people" must be an array or "all".'],
    [{ people: [1] }, '"people.0" must be a string.'],
    [{ shown: true }, '"shown" must be an object or false or null.'],
    [{ shown: {} }, '"shown.a" is required.'],
  ])('%j is refused with the problem of the alternative that fits, or with all alternatives', (value, message) => {
    const { error } = check('body', alternatives, value) as { error: Error & { details: unknown[] } }
    expect(error.message).toBe(message)
    expect(error.details).toHaveLength(1)
  })

  test('the problems of other fields stay in their order', () => {
    const { error } = check('body', alternatives, { file: 1, people: 1 }) as { error: Error & { details: unknown } }
    expect(error.details).toEqual([
      { field: 'file', message: 'must be a string or an object' },
      { field: 'people', message: 'must be an array or "all"' },
    ])
  })
})

describe('a large invalid body', () => {
  const schema = Type.Object({
    names: Type.Optional(Type.Array(Type.String(), { maxItems: 20 })),
    either: Type.Optional(Type.Union([Type.Object({ a: Type.Array(Type.String()) }), Type.Null()])),
    files: Type.Optional(Type.Record(Type.String(), Type.String())),
    only: Type.Optional(Type.Object({ a: Type.String() }, { additionalProperties: false })),
  })
  const many = Array.from({ length: 200_000 }, (_, index) => index)
  let reads = 0
  /** Counts the values that are read. */
  const counted = <T extends object>(value: T): T =>
    new Proxy(value, {
      get(target, name) {
        reads += 1
        return Reflect.get(target, name)
      },
    })
  const fields = (prefix: string) => counted(Object.fromEntries(many.map(n => [prefix + n, n])))

  test.each([
    ['too many items', { names: counted(many.map(String)) }, '"names" must not have more than 20 items.'],
    ['invalid items', { names: counted(many) }, '"names.0" must be a string.'],
    ['invalid items of a variant', { either: { a: counted(many) } }, '"either.a.0" must be a string.'],
    ['invalid values', { files: fields('f') }, '"files.f0" must be a string.'],
    ['unknown fields', { only: fields('x') }, '"only.a" is required.'],
  ])('is refused without an error for each of its %s', (_, value, message) => {
    reads = 0
    const { error } = check('body', schema, value) as { error: Error & { details: unknown[] } }
    // The check itself may read each of them once.
    expect(reads).toBeLessThan(many.length * 1.1)
    expect(error.message).toBe(message)
    expect(error.details.length).toBeLessThanOrEqual(10)
  })
})

test.each(['to', 'in', 'metadata'])('a body whose field %s is deeply nested is refused like any other', name => {
  const deep = JSON.parse(`${'['.repeat(100_000)}${']'.repeat(100_000)}`)
  const { error } = check('body', body, { n: 'x', [name]: deep }) as { error: Error }
  expect(error).toMatchObject({ code: 'invalid_request' })
})

test('the one invalid entry of a record is named, wherever it is', () => {
  const record = Type.Object({ files: Type.Record(Type.String(), Type.String()) })
  const valid = Array.from({ length: 30 }, (_, n) => [`f${n}`, 'x'])
  const { error } = check('body', record, { files: Object.fromEntries([...valid, ['bad', 1]]) }) as { error: Error }
  expect(error.message).toBe('"files.bad" must be a string.')
})

describe('a query string', () => {
  test.each(['limits', 'constructor', '__proto__'])('with an unknown name is refused: %s', name => {
    const given = Object.fromEntries([
      ['limit', '1'],
      [name, 'x'],
    ])
    const { error } = check('querystring', query, given) as { error: Error }
    expect(error).toMatchObject({ code: 'invalid_request', details: [{ field: name }] })
    expect(error.message).toContain('it has limit, to')
    const { error: withoutAny } = check('querystring', Type.Object({}), given) as { error: Error }
    expect(withoutAny.message).toBe('"limit" is not a parameter of this call; the call takes no parameters.')
  })

  test('with a parameter that is given twice is refused', () => {
    const { error } = check('querystring', query, { to: ['a', 'b'] }) as { error: Error }
    expect(error).toMatchObject({ code: 'invalid_request', message: '"to" must be given once.' })
  })

  test('has its integers parsed, and accepts only decimal ones', () => {
    expect(check('querystring', query, { limit: '10', to: '10' })).toEqual({ value: { limit: 10, to: '10' } })
    for (const limit of ['', '1.5', '1e3', '0x1', '-1', ' 1', '0', ['1', '2'], '9'.repeat(30)]) {
      expect(check('querystring', query, { limit })).toMatchObject({ error: { code: 'invalid_request' } })
    }
  })
})
