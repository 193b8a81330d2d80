import { describe, expect, test } from 'vitest'
import { arrange, type Operation, type Unit } from './operation.ts'

interface Input {
  instanceId: string
  label: string
  keys?: string[]
}

function operation(name: string, kind: Partial<Operation<Input, void>> = {}): Operation<Input, void> {
  return {
    name,
    instanceId: input => input.instanceId,
    keys: input => input.keys ?? [],
    run: async (_, inputs) => inputs.map(() => undefined),
    ...kind,
  }
}

const set = operation('set')
const clear = operation('clear')
const alone = operation('alone', { isIndependent: true })
const rare = operation('rare', { isRare: true })

function unit(of: Operation<Input, void>, instanceId: string, label: string, keys?: string[]): Unit {
  const input: Input = { instanceId, label, ...(keys && { keys }) }
  const settle = { resolve: () => undefined, reject: () => undefined }
  return { operation: of as Operation<unknown, unknown>, input, instanceId, lease: undefined, turn: null, ...settle }
}

function labels(units: Unit[]): string[] {
  return arrange(units).map(({ operation: { name }, units: grouped }) => {
    return `${name}:${grouped.map(({ input }) => (input as Input).label).join('')}`
  })
}

describe('units of one commit', () => {
  test('with the same operation run together, across instances', () => {
    expect(labels([unit(set, 'a', '1'), unit(clear, 'b', '2'), unit(set, 'c', '3'), unit(clear, 'd', '4')])).toEqual([
      'set:13',
      'clear:24',
    ])
  })

  test('never change the order of an instance', () => {
    expect(labels([unit(set, 'a', '1'), unit(clear, 'a', '2'), unit(set, 'a', '3'), unit(set, 'b', '4')])).toEqual([
      'set:1',
      'clear:2',
      'set:34',
    ])
    expect(labels([unit(set, 'a', '1'), unit(clear, 'b', '2'), unit(set, 'b', '3'), unit(clear, 'a', '4')])).toEqual([
      'set:1',
      'clear:24',
      'set:3',
    ])
  })

  test('join an earlier run of their operation if they are independent, but never pass a rare one', () => {
    expect(
      labels([
        unit(alone, 'a', '1'),
        unit(set, 'a', '2'),
        unit(alone, 'a', '3'),
        unit(clear, 'a', '4'),
        unit(alone, 'a', '5'),
        unit(set, 'a', '6'),
      ]),
    ).toEqual(['alone:135', 'set:2', 'clear:4', 'set:6'])
    expect(
      labels([
        unit(rare, 'a', '1'),
        unit(alone, 'a', '2'),
        unit(rare, 'a', '3'),
        unit(alone, 'a', '4'),
        unit(alone, 'b', '5'),
      ]),
    ).toEqual(['rare:1', 'alone:2', 'rare:3', 'alone:45'])
  })

  test('with a key in common never run together', () => {
    expect(
      labels([
        unit(set, 'a', '1', ['x']),
        unit(set, 'a', '2', ['y']),
        unit(set, 'a', '3', ['x']),
        unit(set, 'a', '4', ['z']),
        unit(set, 'b', '5', ['x']),
      ]),
    ).toEqual(['set:12', 'set:345'])
  })
})
