// The TypeScript SDK, version 2: 2026-07-28, or sessions. node v2.mjs URL ERA CALLS
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { answer, call } from './person.mjs';

const client = new Client({ name: 'v2', version: '1' }, {
	capabilities: { elicitation: { form: {}, url: {} } },
	versionNegotiation: { mode: process.argv[3] === 'modern' ? { pin: '2026-07-28' } : process.argv[3] },
});
client.setRequestHandler('elicitation/create', async (request) => answer(request.params));
await client.connect(new StreamableHTTPClientTransport(new URL(process.argv[2]), {
	requestInit: { headers: { Authorization: 'Bearer token-of-ann' } },
}));
await call(client);
