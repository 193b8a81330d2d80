import { expect, test } from 'vitest'
import { AllowedMethods } from './allowed-methods.ts'

test('an address allows the methods of all routes with its most literal pattern', () => {
  const allowed = new AllowedMethods()
  allowed.add({ method: 'GET', url: '/messages/:id' })
  allowed.add({ method: ['PUT', 'DELETE'], url: '/messages/:id' })
  allowed.add({ method: 'POST', url: '/messages/text' })
  expect(allowed.find('/messages/text')).toEqual(['POST'])
  expect(allowed.find('/messages/%74ext')).toEqual(['POST'])
  expect(allowed.find('/messages/a%2Fb')).toEqual(['DELETE', 'GET', 'PUT'])
  expect(allowed.find('/messages/texts')).toEqual(['DELETE', 'GET', 'PUT'])
  expect(allowed.find('/messages/')).toEqual(['DELETE', 'GET', 'PUT'])
  expect(allowed.find('/messages')).toEqual([])
  expect(allowed.find('/messages/a/b')).toEqual([])
})
