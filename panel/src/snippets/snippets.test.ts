import { execFileSync } from 'node:child_process'
import { createHmac } from 'node:crypto'
import { copyFileSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, test } from 'vitest'
import { isFromPombal } from './verify.mjs'

interface Vector {
  name: string
  body: string
  secret: string
  /** Set after a rotation, when both secrets sign. */
  previousSecret: string | null
  headers: Record<string, string>
}

const HERE = import.meta.dirname
const { vectors } = JSON.parse(readFileSync(join(HERE, '../../../docs/signature-vectors.json'), 'utf8')) as {
  vectors: Vector[]
}

interface Case {
  name: string
  body: string
  secret: string
  /** With names in lower case. */
  headers: Record<string, string>
  isGood: boolean
}

const lowerCased = (headers: Record<string, string>) =>
  Object.fromEntries(Object.entries(headers).map(([header, value]) => [header.toLowerCase(), value]))

/** The headers of the vector, but signed at another time. */
function signedAt(seconds: number, { body, secret, previousSecret, headers }: Vector): Record<string, string> {
  const given = lowerCased(headers)
  const signed = `${given['webhook-id']}.${seconds}.${body}`
  const signatures = [secret, ...(previousSecret ? [previousSecret] : [])].map(one => {
    const key = Buffer.from(one.slice('whsec_'.length), 'base64')
    return `v1,${createHmac('sha256', key).update(signed).digest('base64')}`
  })
  return { ...given, 'webhook-timestamp': `${seconds}`, 'webhook-signature': signatures.join(' ') }
}

const NOW = Math.floor(Date.now() / 1_000)
const TOLERANCE = 300

test('the cases are signed as the vectors are', () => {
  for (const vector of vectors) {
    const headers = lowerCased(vector.headers)
    expect(signedAt(Number(headers['webhook-timestamp']), vector)).toEqual(headers)
  }
})

/** Every vector, signed now, including those with the secret before a rotation, and copies with one part changed. */
const CASES: Case[] = vectors.flatMap(vector => {
  const { name, body, secret, previousSecret } = vector
  const headers = signedAt(NOW, vector)
  const { 'webhook-signature': _, ...unsigned } = headers
  const otherSecret = secret.replace(/^whsec_../, 'whsec_zz')
  return [
    { name, body, secret, headers, isGood: true },
    ...(previousSecret
      ? [{ name: `${name}, not rotated yet`, body, secret: previousSecret, headers, isGood: true }]
      : []),
    { name: `${name}, another body`, body: `${body} `, secret, headers, isGood: false },
    {
      name: `${name}, another time`,
      body,
      secret,
      headers: { ...headers, 'webhook-timestamp': `${NOW + 1}` },
      isGood: false,
    },
    { name: `${name}, posted again`, body, secret, headers: signedAt(NOW - 2 * TOLERANCE, vector), isGood: false },
    { name: `${name}, in the future`, body, secret, headers: signedAt(NOW + 2 * TOLERANCE, vector), isGood: false },
    {
      name: `${name}, with a clock that differs`,
      body,
      secret,
      headers: signedAt(NOW - TOLERANCE / 2, vector),
      isGood: true,
    },
    { name: `${name}, another secret`, body, secret: otherSecret, headers, isGood: false },
    { name: `${name}, no signature`, body, secret, headers: unsigned, isGood: false },
  ]
})
test('one of the vectors is signed during a rotation', () => {
  expect(CASES.some(({ name }) => name.endsWith('not rotated yet'))).toBe(true)
})
const EXPECTED = CASES.map(({ isGood }) => isGood)

const folder = mkdtempSync(join(tmpdir(), 'pombal-snippets-'))
const casesFile = join(folder, 'cases.json')
writeFileSync(casesFile, JSON.stringify(CASES))
afterAll(() => rmSync(folder, { recursive: true }))

function has(program: string, argument: string): boolean {
  try {
    execFileSync(program, [argument], { stdio: 'ignore' })
    return true
  } catch {
    return false
  }
}

/** Runs a program that prints `[true, false, …]`, an entry for each case. */
function judge(program: string, args: readonly string[]): boolean[] {
  return JSON.parse(execFileSync(program, args, { encoding: 'utf8', cwd: folder }))
}

describe('the snippets of the webhook page accept genuine signatures of Pombal, and nothing else', () => {
  test('Node', () => {
    const judged = CASES.map(({ body, headers, secret }) => isFromPombal(Buffer.from(body), headers, secret))
    expect(judged).toEqual(EXPECTED)
  })

  test('n8n', async () => {
    const code = readFileSync(join(HERE, 'verify-n8n.txt'), 'utf8')
    const AsyncFunction = Object.getPrototypeOf(async () => undefined).constructor as FunctionConstructor
    const run = new AsyncFunction('require', '$env', '$json', '$itemIndex', code)
    for (const { name, body, secret, headers, isGood } of CASES) {
      const helpers = { getBinaryDataBuffer: async () => Buffer.from(body) }
      const require = createRequire(import.meta.url)
      const ran = run.call({ helpers }, require, { POMBAL_WEBHOOK_SECRET: secret }, { headers }, 0)
      if (isGood) expect(await ran, name).toEqual({ json: JSON.parse(body) })
      else await expect(ran, name).rejects.toThrow('not from Pombal')
    }
  })

  test.skipIf(!has('python3', '--version'))('Python', () => {
    const program = [
      'import json, sys',
      `sys.path.insert(0, ${JSON.stringify(HERE)})`,
      'sys.dont_write_bytecode = True',
      'from verify import is_from_pombal',
      'cases = json.load(open("cases.json", encoding="utf-8"))',
      'print(json.dumps([is_from_pombal(c["body"].encode(), c["headers"], c["secret"]) for c in cases]))',
    ]
    expect(judge('python3', ['-c', program.join('\n')])).toEqual(EXPECTED)
  })

  test.skipIf(!has('php', '--version'))('PHP', () => {
    const program = [
      `require ${JSON.stringify(join(HERE, 'verify.php'))};`,
      '$cases = json_decode(file_get_contents("cases.json"), true);',
      '$key = fn($name) => "HTTP_" . strtoupper(strtr($name, "-", "_"));',
      '$server = fn($c) => array_combine(array_map($key, array_keys($c["headers"])), $c["headers"]);',
      '$judge = fn($c) => isFromPombal($c["body"], $server($c), $c["secret"]);',
      'echo json_encode(array_map($judge, $cases));',
    ]
    expect(judge('php', ['-r', program.join('\n')])).toEqual(EXPECTED)
  })

  test.skipIf(!has('go', 'version'))(
    'Go',
    () => {
      copyFileSync(join(HERE, 'verify.go'), join(folder, 'verify.go'))
      writeFileSync(join(folder, 'go.mod'), 'module pombal\n\ngo 1.21\n')
      writeFileSync(join(folder, 'verify_test.go'), GO_TEST)
      const output = execFileSync('go', ['test', './...'], { cwd: folder, encoding: 'utf8' })
      expect(output).toContain('ok')
    },
    120_000,
  )
})

const GO_TEST = `package pombal

import (
	"encoding/json"
	"net/http"
	"os"
	"testing"
)

func TestVectors(t *testing.T) {
	var cases []struct {
		Name, Body, Secret string
		Headers            map[string]string
		IsGood             bool
	}
	text, err := os.ReadFile("cases.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &cases); err != nil {
		t.Fatal(err)
	}
	for _, c := range cases {
		headers := http.Header{}
		for name, value := range c.Headers {
			headers.Set(name, value)
		}
		if IsFromPombal([]byte(c.Body), headers, c.Secret) != c.IsGood {
			t.Errorf("%s: not %v", c.Name, c.IsGood)
		}
	}
}
`
