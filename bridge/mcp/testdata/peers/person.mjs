import { readFileSync } from 'node:fs';

// What the person of the tests answers, by the beginning of what is asked.
const answers = JSON.parse(readFileSync(new URL('answers.json', import.meta.url)));

export function answer(params) {
	if (params.message.startsWith('Deploy no')) return { action: 'decline' };
	if (params.mode === 'url') return { action: 'accept' };
	const found = answers.find(([begin]) => params.message.startsWith(begin));
	if (!found) throw new Error(`nobody knows ${params.message}`);
	return { action: 'accept', content: found[1] };
}

// The calls that come in on the command line as JSON, [[tool, arguments], …]; their results go out, one a line.
export async function call(client) {
	await client.listTools();
	for (const [name, args] of JSON.parse(process.argv[4])) {
		let line;
		try {
			const result = await client.callTool({ name, arguments: args });
			line = { code: result.structuredContent?.code, isError: !!result.isError, text: result.content[0]?.text };
		} catch (e) {
			line = { data: e.data, number: e.code };
		}
		console.log(JSON.stringify(line));
	}
	await client.close();
}
