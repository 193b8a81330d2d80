import { Tabs } from '@mantine/core'
import { CodeBlock } from '../../components/copy/copy.tsx'
import goSnippet from '../../snippets/verify.go?raw'
import nodeSnippet from '../../snippets/verify.mjs?raw'
import phpSnippet from '../../snippets/verify.php?raw'
import pythonSnippet from '../../snippets/verify.py?raw'
import n8nSnippet from '../../snippets/verify-n8n.txt?raw'

/** The same files that the tests run against the shared signature vectors. */
const SNIPPETS = [
  { name: 'Node', code: nodeSnippet },
  { name: 'Python', code: pythonSnippet },
  { name: 'PHP', code: phpSnippet },
  { name: 'Go', code: goSnippet },
  { name: 'n8n', code: n8nSnippet },
] as const

export function Snippets() {
  return (
    <Tabs defaultValue="Node">
      <Tabs.List mb="md">
        {SNIPPETS.map(({ name }) => (
          <Tabs.Tab key={name} value={name}>
            {name}
          </Tabs.Tab>
        ))}
      </Tabs.List>
      {SNIPPETS.map(({ name, code }) => (
        <Tabs.Panel key={name} value={name}>
          <CodeBlock code={code.trimEnd()} label={name} />
        </Tabs.Panel>
      ))}
    </Tabs>
  )
}
